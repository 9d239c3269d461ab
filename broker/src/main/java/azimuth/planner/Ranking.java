package azimuth.planner;

import java.util.stream.LongStream;

/** Preference of the members for a topic: the highest score, unsigned, is the first choice. */
interface Ranking {
    /** Lowest bits of the scores that {@link #mark} does not look at, which saves a step of the hash. */
    int ROUGH_BITS = 33;

    /** What a member's scores are made from; never changes. */
    long trait(int member);

    /** The score of a member, by its trait. */
    long score(int topic, long trait);

    /**
     * Marks the members whose scores are high enough.
     *
     * <p>A plan from nothing spends most of its time here, and the scores of most members are never needed. So an
     * implementation is one loop without a branch or an index, which the compiler turns into vectors, and writes no scores.
     *
     * @param traits of some members, the first of this array
     * @param count how many there are
     * @param least unsigned; its lowest {@link #ROUGH_BITS} are 0
     * @param marks takes 1 for each score that is at least so high, else 0
     */
    void mark(int topic, long[] traits, int count, long least, long[] marks);

    /** Scores of all members. */
    default long[] scores(int topic, int members) {
        return LongStream.range(0, members).map(m -> score(topic, trait((int) m))).toArray();
    }

    /** A score that about so many of the members reach, as {@link #mark} takes it; only the speed of a plan depends on it. */
    default long exceededBy(int wanted, int members) {
        return wanted >= members ? 0 : -1 - Long.divideUnsigned(-1, members) * wanted >>> ROUGH_BITS << ROUGH_BITS;
    }

    /** Whether a score is at least so high, as 1 or 0: a sign instead of a comparison, which would be a branch. */
    static long isAtLeast(long least, long score) {
        return ~((score >>> 1) - (least >>> 1)) >>> 63;
    }
}
