"""Former names of options: still accepted, but not listed in any help text."""

from typing import Any, ClassVar

from typer.core import TyperCommand


class Respelled(TyperCommand):
    """A command that accepts former option names."""

    spellings: ClassVar[dict[str, str]] = {}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 -- typer's own copy of click is private
        """Read the arguments; text after `--` is not an option."""
        options = args[: args.index("--")] if "--" in args else args
        return super().parse_args(ctx, [self._spelled(one) for one in options] + args[len(options) :])

    def _spelled(self, word: str) -> str:
        name, equals, value = word.partition("=")
        return f"{self.spellings.get(name, name)}{equals}{value}"


def formerly(**names: str) -> type[Respelled]:
    """Return the class of a command whose options `--new` had the names `--old` before.

    Args:
        names: new to old name, without leading dashes and with underscores, like parameter names.
    """
    flags = {_flag(old): _flag(new) for new, old in names.items()}
    return type("Respelled", (Respelled,), {"spellings": flags})


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")
