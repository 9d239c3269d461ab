"""How the columns of a schema are held, and which schemas can be read."""


cdef list inner_fields(kind):
    if pa.types.is_struct(kind):
        return list(kind)
    return [kind.value_field] if pa.types.is_list(kind) else []


cdef dict KINDS = {
    "string": (TEXT, 4),
    "bool": (TRUTH, 1),
    "int8": (INTEGER, 1),
    "int16": (INTEGER, 2),
    "int32": (INTEGER, 4),
    "int64": (INTEGER, 8),
    "double": (DOUBLE, 8),
    "float": (SINGLE, 4),
    "date32[day]": (DATE, 4),
    "timestamp[us, tz=UTC]": (TIME, 8),
    "timestamp[us]": (TIME, 8),
}


cdef int set_kind(Node* node, kind) except -1:
    if pa.types.is_struct(kind):
        node.kind = OBJECT
    elif pa.types.is_list(kind):
        node.kind, node.width = LIST, 4
    elif pa.types.is_decimal128(kind):
        node.kind, node.width, node.scale = DECIMAL, 16, kind.scale
        node.high = 10 ** min(kind.precision, MOST_DECIMAL_DIGITS) - 1
    else:
        node.kind, node.width = KINDS[str(kind)]
        node.zone = node.kind == TIME and kind.tz is not None
        if node.kind == INTEGER:
            node.high = INT64_MAX >> (64 - 8 * node.width)
            node.low = -node.high - 1
    return 0


def can_plan(columns):
    """Return whether a plan can be made for columns."""
    return bool(len(columns)) and fields_fit(list(columns), MOST_LEVELS)


cdef bint fields_fit(list fields, int levels):
    names = [field.name for field in fields]
    return levels > 0 and len(set(names)) == len(names) and all([field_fits(field, levels) for field in fields])


cdef bint field_fits(field, int levels):
    kind = field.type
    if not field.nullable or any([letter in '"\\' or letter < " " for letter in field.name]):
        return False
    if pa.types.is_struct(kind) or pa.types.is_list(kind):
        inner = inner_fields(kind)
        return bool(inner) and fields_fit(inner, levels - 1)
    if pa.types.is_decimal128(kind):
        return kind.scale >= 0
    return str(kind) in KINDS
