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
                public void rank(int topic, long[] scores) {
                    group.rank(topic, scores);
                }

                @Override
                public int best(int topic, long least, int[] among, int count, int[] found, long[] scores) {
                    return group.best(topic, least, among, count, found, scores);
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
                public void rank(int topic, long[] scores) {
                    int start = group.first[topic] % count;
                    for (int m = 0; m < count; m++) {
                        scores[m] = score(m, start);
                    }
                }

                @Override
                public int best(int topic, long least, int[] among, int wanted, int[] found, long[] scores) {
                    int start = group.first[topic] % count;
                    int size = 0;
                    for (int i = 0; i < wanted; i++) {
                        int m = among[i];
                        scores[m] = score(m, start);
                        if (scores[m] >= least) {
                            found[size++] = m;
                        }
                    }
                    return size;
                }

                private long score(int member, int start) {
                    int nth = place[member] - start;
                    return count - (nth < 0 ? nth + count : nth);
                }

                @Override
                public long exceededBy(int wanted, int members) {
                    return wanted >= members ? 0 : count - (long) count * wanted / members;
                }
            };
        }
    };

    abstract Fill.Ranking ranking(Group group, int seed);
}
