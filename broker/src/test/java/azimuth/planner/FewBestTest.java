package azimuth.planner;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** The order of a few members, beside a plain sort. */
class FewBestTest {
    @Test
    void theFirstOfAPlainSortAreChosenOrNoneWhereScoresAreTooNear() {
        FewBest best = new FewBest();
        for (int seed = 0; seed < 20_000; seed++) {
            Random dice = new Random(seed);
            int count = dice.nextInt(FewBest.MOST + 1);
            int wanted = dice.nextInt(count + 1);
            long[] scores = dice.longs(100).map(score -> score >> dice.nextInt(2) * 40).toArray();
            int[] members = dice.ints(0, 100).distinct().limit(count).toArray();
            int[] chosen = new int[count];
            boolean certain = best.choose(members, count, scores, chosen, wanted);
            int[] expected = Arrays.stream(members).boxed()
                    .sorted((one, two) -> Long.compareUnsigned(scores[two], scores[one]))
                    .mapToInt(Integer::intValue).limit(wanted).toArray();
            if (certain) {
                assertArrayEquals(expected, Arrays.copyOf(chosen, wanted), "seed " + seed);
            }
            assertEquals(isFarApart(members, scores, wanted), certain, "seed " + seed);
        }
    }

    /** Whether each of the first and the one after it differ in more than their lowest bits. */
    private static boolean isFarApart(int[] members, long[] scores, int wanted) {
        long[] cut = Arrays.stream(members).mapToLong(m -> scores[m] >>> 6).map(score -> -score).sorted().toArray();
        return IntStream.range(0, wanted).allMatch(i -> i + 1 >= cut.length || cut[i] != cut[i + 1]);
    }

    @Test
    void equalScoresAreLeftToAnotherSort() {
        assertFalse(new FewBest().choose(new int[] {0, 1}, 2, new long[] {5, 5}, new int[2], 1));
    }
}
