package azimuth.planner;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The sort of spread numbers, beside that of Java. */
class SpreadSortTest {
    @Test
    void anyNumbersAreSortedAlsoThoseThatAreNotSpread() {
        SpreadSort sort = new SpreadSort(500);
        for (int seed = 0; seed < 3_000; seed++) {
            Random dice = new Random(seed);
            int count = dice.nextInt(501);
            int spread = dice.nextInt(64); // up to all of one value
            long[] numbers = dice.longs(count).map(number -> number >>> 1 >>> spread).toArray();
            if (count > 0 && dice.nextBoolean()) {
                numbers[0] = Long.MAX_VALUE; // one far away puts all others into one slot
            }
            long[] expected = numbers.clone();
            Arrays.sort(expected);
            sort.sort(numbers, count);
            assertArrayEquals(expected, numbers, "seed " + seed);
        }
    }
}
