package azimuth.planner;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * The hash of the project: MurmurHash3 of each name, a 64-bit mixer for each pair.
 *
 * <p>docs/hash.md specifies it, tests/data/hash_vectors.json has the vectors. All arithmetic wraps around; results are
 * unsigned, so they are compared with {@link Long#compareUnsigned}.
 */
final class Hash {
    static final long GOLDEN = 0x9E3779B97F4A7C15L;

    private static final long C1 = 0x87C37B91114253D5L;
    private static final long C2 = 0x4CF5AD432745937FL;
    private static final VarHandle WORDS = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private Hash() {}

    /** The first 64 bits, little endian, of MurmurHash3 x64 128 of the name's UTF-8 bytes. */
    static long name(String name, int seed) {
        return name(name.getBytes(StandardCharsets.UTF_8), seed);
    }

    /** The same for a name as its UTF-8 bytes. */
    static long name(byte[] data, int seed) {
        long h1 = seed & 0xFFFFFFFFL;
        long h2 = h1;
        for (int at = 0; at + 16 <= data.length; at += 16) {
            h1 ^= scrambleLow((long) WORDS.get(data, at));
            h1 = (Long.rotateLeft(h1, 27) + h2) * 5 + 0x52DCE729L;
            h2 ^= scrambleHigh((long) WORDS.get(data, at + 8));
            h2 = (Long.rotateLeft(h2, 31) + h1) * 5 + 0x38495AB5L;
        }
        int tail = data.length & 15;
        if (tail > 8) {
            h2 ^= scrambleHigh(littleEndian(data, data.length - tail + 8, tail - 8));
        }
        if (tail > 0) {
            h1 ^= scrambleLow(littleEndian(data, data.length - tail, Math.min(8, tail)));
        }
        h1 ^= data.length;
        h2 ^= data.length;
        h1 += h2;
        h2 += h1;
        return finish(h1) + finish(h2);
    }

    /** The finalizer of SplitMix64: a bijection in which each input bit moves each output bit half of the time. */
    static long mix(long value) {
        long z = mixHigh(value);
        return z ^ (z >>> 31);
    }

    /** The finalizer without its last step, which does not change the highest 31 bits. */
    static long mixHigh(long value) {
        long z = (value ^ (value >>> 30)) * 0xBF58476D1CE4E5B9L;
        return (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    }

    /** The pair of a hashed member and a hashed topic; the highest of a topic is its first choice. */
    static long pair(long node, long key) {
        return mix(node ^ mix(key + GOLDEN));
    }

    private static long littleEndian(byte[] data, int start, int count) {
        long word = 0;
        for (int i = count - 1; i >= 0; i--) {
            word = word << 8 | data[start + i] & 0xFFL;
        }
        return word;
    }

    private static long scrambleLow(long k) {
        return Long.rotateLeft(k * C1, 31) * C2;
    }

    private static long scrambleHigh(long k) {
        return Long.rotateLeft(k * C2, 33) * C1;
    }

    private static long finish(long k) {
        long z = (k ^ (k >>> 33)) * 0xFF51AFD7ED558CCDL;
        z = (z ^ (z >>> 33)) * 0xC4CEB9FE1A85EC53L;
        return z ^ (z >>> 33);
    }
}
