package azimuth.planner;

import java.util.Arrays;

/** How a topic ranks the members. */
public enum Strategy {
    /** By rendezvous hashing: the highest random weight of topic id and identity. */
    HRW {
        @Override
        Fill.Ranking ranking(Group group, int seed) {
            return new Fill.Ranking() {
                @Override
                public long trait(int member) {
                    return group.hashes[member];
                }

                @Override
                public void score(int topic, long[] traits, int count, long[] scores) {
                    long key = group.keys[topic];
                    // Most of the time of a plan: without a branch or an index, so that the compiler uses vectors.
                    for (int i = 0; i < count; i++) {
                        scores[i] = Hash.mix(traits[i] ^ key);
                    }
                }
            };
        }
    },
    /** By place in a seeded shuffle of the members, which each topic starts where the one before it ended. */
    SHUFFLED {
        @Override
        Fill.Ranking ranking(Group group, int seed) {
            int count = group.members.length;
            Integer[] order = new Integer[count];
            long[] shuffled = new long[count];
            for (int m = 0; m < count; m++) {
                order[m] = m;
                shuffled[m] = Hash.mix(group.hashes[m] + (seed & 0xFFFFFFFFL));
            }
            Arrays.sort(order, (one, two) -> Long.compareUnsigned(shuffled[one], shuffled[two]));
            int[] place = new int[count];
            for (int i = 0; i < count; i++) {
                place[order[i]] = i;
            }
            return new Fill.Ranking() {
                @Override
                public long trait(int member) {
                    return place[member];
                }

                @Override
                public void score(int topic, long[] traits, int wanted, long[] scores) {
                    int start = group.first[topic] % count;
                    for (int i = 0; i < wanted; i++) {
                        long nth = traits[i] - start;
                        scores[i] = count - (nth + (nth >> 63 & count)); // a place before the start comes after the last
                    }
                }

                @Override
                public long exceededBy(int wanted, int members) {
                    // Mostly the members after the start have room, because the topics before took those before it.
                    return wanted >= members ? 0 : count - wanted;
                }
            };
        }
    };

    abstract Fill.Ranking ranking(Group group, int seed);
}
