package azimuth.planner;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The order of many members, beside a plain sort: another order would be another plan. */
class ManyBestTest {
    @Test
    void theFirstOfAPlainSortAreChosen() {
        ManyBest best = new ManyBest(400); // one for all: it keeps nothing of the sorts before
        for (int seed = 0; seed < 3_000; seed++) {
            Random dice = new Random(seed);
            int count = dice.nextInt(401);
            int wanted = dice.nextInt(count + 1);
            long[] scores = dice.longs(1_000).map(score -> score >>> dice.nextInt(2) * 20).toArray();
            int[] members = dice.ints(0, 1_000).distinct().limit(count).toArray();
            int[] chosen = new int[count];
            assertTrue(best.choose(members, count, scores, chosen, wanted), "seed " + seed);
            int[] expected = Arrays.stream(members).boxed()
                    .sorted((one, two) -> Long.compareUnsigned(scores[two], scores[one]))
                    .mapToInt(Integer::intValue).limit(wanted).toArray();
            assertArrayEquals(expected, Arrays.copyOf(chosen, wanted), "seed " + seed);
        }
    }

    @Test
    void scoresThatDifferOnlyInTheirLowestBitsAreLeftToAnotherSort() {
        assertFalse(new ManyBest(2).choose(new int[] {0, 1}, 2, new long[] {5, 6}, new int[2], 1));
        assertFalse(new ManyBest(2).choose(new int[] {0, 1}, 2, new long[] {-1, -1}, new int[2], 2));
    }
}
