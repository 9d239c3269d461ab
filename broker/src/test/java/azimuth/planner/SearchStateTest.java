package azimuth.planner;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Counts that a search keeps up to date instead of counting all topics of all members each time. */
class SearchStateTest {
    @Test
    void changedPiecesAreCountedAsByACountOfAllTopics() {
        for (int seed = 0; seed < 300; seed++) {
            Random dice = new Random(seed);
            int topics = 1 + dice.nextInt(5);
            int members = 1 + dice.nextInt(5);
            int[][] owned = counts(dice, topics, members);
            SearchState state = new SearchState(new Band(new int[members], new int[members]), new int[topics],
                    new boolean[topics][members], owned, new int[topics][1], new boolean[1][members], counts(dice, topics, members));
            for (int turn = 0; turn < 30; turn++) {
                for (int m = 0; m < members; m++) {
                    int member = m;
                    String where = "seed " + seed + ", turn " + turn;
                    assertEquals(IntStream.range(0, topics).filter(t -> state.pieces[t][member] < owned[t][member]).count(),
                            state.missing[m], where);
                    assertEquals(IntStream.range(0, topics).filter(t -> state.pieces[t][member] != owned[t][member]).count(),
                            state.touched[m], where);
                }
                state.put(dice.nextInt(topics), dice.nextInt(members), dice.nextInt(4));
                if (dice.nextInt(10) == 0) {
                    state.reset(state.copyOfPieces());
                }
            }
        }
    }

    private static int[][] counts(Random dice, int topics, int members) {
        int[][] out = new int[topics][];
        Arrays.setAll(out, t -> dice.ints(members, 0, 4).toArray());
        return out;
    }
}
