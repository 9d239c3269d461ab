package azimuth.planner;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** A member that is missing here gets nothing; one that is here too long gets too much. */
class OpenMembersTest {
    private static int[] sorted(OpenMembers open) {
        return Arrays.stream(open.members, 0, open.count).sorted().toArray();
    }

    @Test
    void theOpenMembersAreThoseBelowAllTheirBounds() {
        for (int seed = 0; seed < 500; seed++) {
            Random dice = new Random(seed);
            int count = dice.nextInt(12);
            long[] traits = dice.longs(count).toArray();
            OpenMembers open = new OpenMembers(traits);
            for (int run = 0; run < 3; run++) {
                checkRun(open, dice, traits, "seed " + seed);
            }
        }
    }

    private static void checkRun(OpenMembers open, Random dice, long[] traits, String where) {
        int count = traits.length;
        int[] load = dice.ints(count, 0, 4).toArray();
        int[] high = dice.ints(count, 0, 9).toArray();
        int[] low = Arrays.stream(high).map(most -> dice.nextInt(most + 1)).toArray();
        int bound = 1;
        boolean needy = false;
        open.forget();
        for (int turn = 0; turn < 40; turn++) {
            bound = dice.nextInt(6) == 0 ? dice.nextInt(9) : bound; // mostly the bound of the turn before
            needy = dice.nextInt(10) == 0 ? !needy : needy;
            int[] top = needy ? low : high;
            int most = bound;
            open.refresh(load, top, high, bound);
            int[] expected = IntStream.range(0, count).filter(m -> load[m] < top[m] && load[m] < high[m] && load[m] < most).toArray();
            assertArrayEquals(expected, sorted(open), where);
            for (int i = 0; i < open.count; i++) {
                assertEquals(traits[open.members[i]], open.traits[i], where + ": the trait of another member");
            }
            if (count > 0) {
                int member = dice.nextInt(count); // also one above its bound gets a partition, where no other has room
                open.gave(member, ++load[member]);
            }
        }
    }

    @Test
    void aRunWithOtherLoadsReadsThemAgain() {
        OpenMembers open = new OpenMembers(new long[] {7, 8});
        int[] high = {1, 1};
        open.refresh(new int[] {0, 1}, high, high, 5);
        open.forget();
        open.refresh(new int[] {1, 0}, high, high, 5);
        assertArrayEquals(new int[] {1}, sorted(open));
        open.gave(1, 1);
        assertEquals(0, open.count);
    }
}
