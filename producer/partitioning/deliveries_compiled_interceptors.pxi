"""librdkafka's interceptors in C, and what they count; without GCC or Clang nothing is counted."""

cdef extern from *:
    """
    #if defined(__GNUC__) && !defined(_WIN32)
    #include <pthread.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <string.h>

    #define COUNTS_IN_C 1
    #define KINDS 3     /* unkeyed, keyed, explicit: the order of `KIND_NAMES` */
    #define FIRST 64    /* partitions of a topic's first chunk; each next one has twice as many */
    #define CHUNKS 26   /* all that an int32 can name */
    #define BUCKETS 1024
    #define NAME "azimuth-deliveries"
    #define EXPLICIT ((uintptr_t)1)

    /* rd_kafka_message_t, a public structure of librdkafka */
    typedef struct {
        int err;
        void *topic;
        int32_t partition;
        void *payload;
        size_t length;
        void *key;
        size_t key_length;
        int64_t offset;
        void *opaque;
    } Record;

    typedef struct {
        int64_t records, bytes;        /* written by librdkafka's threads */
        int64_t seen_records, seen_bytes; /* written under Python's lock */
    } Cell;

    typedef struct Topic {
        struct Topic *next;
        int32_t partitions; /* one more than the highest that was seen */
        Cell *chunks[CHUNKS];
        char name[];
    } Topic;

    /* Two own it: the client, until it has ended, and the Python object, whose figures may be read after that. */
    typedef struct {
        int owners;
        int started;
        int empty_is_null;
        uint64_t id;
        pthread_mutex_t growing;
        Topic *topics[BUCKETS];
    } Acks;

    static const char *(*topic_name)(const void *);
    static int (*message_headers)(const void *, void **);
    static int (*header_at)(const void *, size_t, const char **, const void **, size_t *);

    static __thread int sends_explicit;
    /* A thread acknowledges batches of one topic each, so it nearly always looks for the topic that it found last. */
    static __thread struct { uint64_t id; Topic *topic; } last;

    static Acks *acks_new(int empty_is_null) {
        static uint64_t made; /* under Python's lock */
        Acks *acks = calloc(1, sizeof(Acks));
        if (acks) {
            acks->owners = 1;
            acks->empty_is_null = empty_is_null;
            acks->id = ++made;
            pthread_mutex_init(&acks->growing, NULL);
        }
        return acks;
    }

    static void acks_release(Acks *acks) {
        if (__atomic_sub_fetch(&acks->owners, 1, __ATOMIC_ACQ_REL))
            return;
        for (int bucket = 0; bucket < BUCKETS; bucket++)
            for (Topic *topic = acks->topics[bucket], *next; topic; topic = next) {
                next = topic->next;
                for (int chunk = 0; chunk < CHUNKS; chunk++)
                    free(topic->chunks[chunk]);
                free(topic);
            }
        pthread_mutex_destroy(&acks->growing);
        free(acks);
    }

    static Topic *topic_in(Topic *topic, const char *name) {
        while (topic && strcmp(topic->name, name))
            topic = topic->next;
        return topic;
    }

    static Topic **bucket_of(Acks *acks, const char *name) {
        uint32_t hash = 0x811C9DC5;
        for (; *name; name++)
            hash = (hash ^ (unsigned char)*name) * 0x01000193;
        return &acks->topics[hash % BUCKETS];
    }

    /* Readers take no lock: topics and chunks are published whole, and stay until the end. */
    static Topic *topic_of(Acks *acks, const char *name) {
        Topic **bucket, *found;
        if (last.id == acks->id && !strcmp(last.topic->name, name))
            return last.topic;
        bucket = bucket_of(acks, name);
        found = topic_in(__atomic_load_n(bucket, __ATOMIC_ACQUIRE), name);
        if (!found) {
            pthread_mutex_lock(&acks->growing);
            found = topic_in(*bucket, name);
            if (!found && (found = calloc(1, sizeof(Topic) + strlen(name) + 1))) {
                strcpy(found->name, name);
                found->next = *bucket;
                __atomic_store_n(bucket, found, __ATOMIC_RELEASE);
            }
            pthread_mutex_unlock(&acks->growing);
        }
        if (found) {
            last.id = acks->id;
            last.topic = found;
        }
        return found;
    }

    /* The place of a partition's cells; NULL in `cells` where nothing was counted yet. */
    static Cell **chunk_of(Topic *topic, int32_t partition, size_t *at, size_t *size) {
        uint32_t block = (uint32_t)partition / FIRST + 1;
        int chunk = 31 - __builtin_clz(block);
        *size = (size_t)FIRST << chunk;
        *at = (size_t)partition - FIRST * (((size_t)1 << chunk) - 1);
        return &topic->chunks[chunk];
    }

    static Cell *cells_of(Acks *acks, Topic *topic, int32_t partition) {
        size_t at, size;
        Cell **place = chunk_of(topic, partition, &at, &size);
        Cell *cells = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        if (!cells || partition >= __atomic_load_n(&topic->partitions, __ATOMIC_RELAXED)) {
            pthread_mutex_lock(&acks->growing);
            if (!(cells = *place) && (cells = calloc(size * KINDS, sizeof(Cell))))
                __atomic_store_n(place, cells, __ATOMIC_RELEASE);
            if (cells && partition >= topic->partitions)
                __atomic_store_n(&topic->partitions, partition + 1, __ATOMIC_RELEASE);
            pthread_mutex_unlock(&acks->growing);
        }
        return cells ? cells + at * KINDS : NULL;
    }

    static size_t headers_size(const Record *record) {
        void *headers;
        const char *name;
        const void *value;
        size_t size = 0, length;
        if (message_headers(record, &headers))
            return 0;
        for (size_t at = 0; !header_at(headers, at, &name, &value, &length); at++)
            size += strlen(name) + length;
        return size;
    }

    /* In the thread that queues a record. The mark stays until the acknowledgement: a pointer to a heap object is even. */
    static int on_send(void *client, Record *record, void *opaque) {
        if (sends_explicit)
            record->opaque = (void *)((uintptr_t)record->opaque | EXPLICIT);
        return 0;
    }

    /* Once for each record, before its delivery report; also for one that is refused after `on_send`. */
    static int on_acknowledgement(void *client, Record *record, void *opaque) {
        Acks *acks = opaque;
        Topic *topic;
        Cell *cell;
        size_t size = record->length + record->key_length;
        int kind = record->key && (record->key_length || !acks->empty_is_null);
        if ((uintptr_t)record->opaque & EXPLICIT) {
            record->opaque = (void *)((uintptr_t)record->opaque & ~EXPLICIT);
            kind = 2;
        }
        if (record->err || record->partition < 0)
            return 0;
        if (record->opaque) /* one without came directly, and has no headers */
            size += headers_size(record);
        if ((topic = topic_of(acks, topic_name(record->topic))) && (cell = cells_of(acks, topic, record->partition))) {
            __atomic_fetch_add(&cell[kind].bytes, (int64_t)size, __ATOMIC_RELAXED);
            __atomic_fetch_add(&cell[kind].records, 1, __ATOMIC_RELEASE);
        }
        return 0;
    }

    /* At the very end of the client, when all its threads have ended. */
    static int on_conf_destroy(void *opaque) {
        acks_release(opaque);
        return 0;
    }

    /* Of the client that this thread is making. */
    static __thread Acks *pending;
    static void *functions[7];

    static void set_pending(Acks *acks) { pending = acks; }

    typedef int (*Add)(void *, const char *, void *, void *);

    static int on_new(void *client, const void *conf, void *opaque, char *error, size_t error_size) {
        /* The second one marks records, and only the first one clears the mark. */
        ((Acks *)opaque)->started = !((Add)functions[5])(client, NAME, on_acknowledgement, opaque)
            && !((Add)functions[6])(client, NAME, on_send, opaque);
        return 0;
    }

    /* Called by librdkafka, which takes this module as a plugin, while it reads the configuration of a client. */
    __attribute__((visibility("default"))) int conf_init(void *conf, void **opaque, char *error, size_t error_size) {
        Acks *acks = pending;
        if (!acks)
            return 0;
        topic_name = functions[0];
        message_headers = functions[1];
        header_at = functions[2];
        __atomic_add_fetch(&acks->owners, 1, __ATOMIC_RELAXED);
        if (((Add)functions[3])(conf, NAME, on_conf_destroy, acks))
            acks_release(acks);
        else
            ((Add)functions[4])(conf, NAME, on_new, acks);
        return 0;
    }

    static int acks_started(Acks *acks) { return acks->started; }

    static Cell *cells_seen(Topic *topic, int32_t partition) {
        size_t at, size;
        Cell *cells = __atomic_load_n(chunk_of(topic, partition, &at, &size), __ATOMIC_ACQUIRE);
        return cells ? cells + at * KINDS : NULL;
    }

    static Topic *topic_found(Acks *acks, const char *name) {
        return topic_in(__atomic_load_n(bucket_of(acks, name), __ATOMIC_ACQUIRE), name);
    }

    static Topic *first_of(Acks *acks, int bucket) {
        return __atomic_load_n(&acks->topics[bucket], __ATOMIC_ACQUIRE);
    }

    /* What was counted since the last call; records first, so that no record is seen without its bytes. */
    static int cell_take(Cell *cell, int64_t *records, int64_t *bytes) {
        int64_t all = __atomic_load_n(&cell->records, __ATOMIC_ACQUIRE);
        int64_t size = __atomic_load_n(&cell->bytes, __ATOMIC_RELAXED);
        *records = all - cell->seen_records;
        *bytes = size - cell->seen_bytes;
        cell->seen_records = all;
        cell->seen_bytes = size;
        return *records || *bytes;
    }
    static void set_explicit(int is) { sends_explicit = is; }
    #else
    /* Another compiler or system: records count when they are queued. */
    #define COUNTS_IN_C 0
    #define BUCKETS 0
    #define KINDS 0
    #include <stdint.h>
    typedef struct { int64_t records; } Cell;
    typedef struct Topic { struct Topic *next; int32_t partitions; char *name; } Topic;
    typedef struct { int owners; } Acks;
    static Acks *acks_new(int empty_is_null) { return NULL; }
    static void acks_release(Acks *acks) {}
    static void *functions[7];
    static void set_pending(Acks *acks) {}
    static int acks_started(Acks *acks) { return 0; }
    static Cell *cells_seen(Topic *topic, int32_t partition) { return NULL; }
    static Topic *topic_found(Acks *acks, const char *name) { return NULL; }
    static Topic *first_of(Acks *acks, int bucket) { return NULL; }
    static int cell_take(Cell *cell, int64_t *records, int64_t *bytes) { return 0; }
    static void set_explicit(int is) {}
    #endif
    """
    ctypedef struct Cell:
        pass
    ctypedef struct Topic:
        Topic* next
        int32_t partitions
        char* name
    ctypedef struct Acks:
        pass
    const int COUNTS_IN_C
    const int BUCKETS
    const int KINDS
    Acks* acks_new(int empty_is_null) noexcept
    void acks_release(Acks* acks) noexcept
    void* functions[7]
    void set_pending(Acks* acks) noexcept
    bint acks_started(Acks* acks) noexcept
    Cell* cells_seen(Topic* topic, int32_t partition) noexcept
    Topic* topic_found(Acks* acks, const char* name) noexcept
    Topic* first_of(Acks* acks, int bucket) noexcept
    bint cell_take(Cell* cell, int64_t* records, int64_t* bytes) noexcept
    void set_explicit(bint value) noexcept
