package azimuth.planner;

import java.util.Arrays;
import java.util.Comparator;
import java.util.stream.IntStream;

/** How a topic ranks the members. */
public enum Strategy {
    /** By rendezvous hashing: the highest random weight of topic id and identity. */
    HRW {
        @Override
        Ranking ranking(Group group, int seed) {
            return new Ranking() {
                @Override
                public long trait(int member) {
                    return group.hashes[member];
                }

                @Override
                public long score(int topic, long trait) {
                    return Hash.mix(trait ^ group.keys[topic]);
                }

                @Override
                public void mark(int topic, long[] traits, int count, long least, long[] marks) {
                    long key = group.keys[topic];
                    for (int i = 0; i < count; i++) {
                        marks[i] = Ranking.isAtLeast(least, Hash.mixHigh(traits[i] ^ key));
                    }
                }
            };
        }
    },
    /** By place in a seeded shuffle of the members, which each topic starts where the one before it ended. */
    SHUFFLED {
        @Override
        Ranking ranking(Group group, int seed) {
            int count = group.members.length;
            int[] order = shuffled(group, seed);
            int[] place = new int[count];
            for (int i = 0; i < count; i++) {
                place[order[i]] = i;
            }
            return new Ranking() {
                @Override
                public long trait(int member) {
                    return place[member];
                }

                @Override
                public long score(int topic, long trait) {
                    return score(trait - group.first[topic] % count);
                }

                @Override
                public void mark(int topic, long[] traits, int wanted, long least, long[] marks) {
                    int start = group.first[topic] % count;
                    for (int i = 0; i < wanted; i++) {
                        marks[i] = Ranking.isAtLeast(least, score(traits[i] - start));
                    }
                }

                /** A place before the start comes after the last. */
                private long score(long nth) {
                    return count - (nth + (nth >> 63 & count)) << FewBest.UNUSED_BITS;
                }

                @Override
                public long exceededBy(int wanted, int members) {
                    // Mostly the members after the start have room, because the topics before took those before it.
                    return wanted >= members ? 0 : (long) count - wanted << FewBest.UNUSED_BITS;
                }
            };
        }

        /** The members in the order of their hashes with the seed, the lowest, unsigned, first. */
        private static int[] shuffled(Group group, int seed) {
            int count = group.members.length;
            int[] members = IntStream.range(0, count).toArray();
            long[] scores = new long[count];
            for (int m = 0; m < count; m++) {
                scores[m] = ~Hash.mix(group.hashes[m] + (seed & 0xFFFFFFFFL));
            }
            int[] order = new int[count];
            if (new ManyBest(count).choose(members, count, scores, order, count)) {
                return order;
            }
            Comparator<Integer> highest = (one, two) -> Long.compareUnsigned(scores[two], scores[one]);
            return Arrays.stream(members).boxed().sorted(highest).mapToInt(Integer::intValue).toArray();
        }
    };

    abstract Ranking ranking(Group group, int seed);
}
