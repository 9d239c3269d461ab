package azimuth.planner;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Names stand in the order in which Python sorts them: another order would give other owners. */
class NameOrderTest {
    /** One to four bytes each in UTF-8; Java's own order puts the last before U+E000. */
    private static final List<String> CHARACTERS = List.of("\0", "a", "b", "\u007F", "\u0080", "é", "\uD7FF", "\uE000", "\uFFFF", "\uD83D\uDC0E");

    private static int[] order(List<String> names, Comparator<Integer> ties) {
        return NameOrder.ascending(names.stream().map(name -> name.getBytes(StandardCharsets.UTF_8)).toArray(byte[][]::new), ties);
    }

    private static int compareCodePoints(String one, String two) {
        return Arrays.compare(one.codePoints().toArray(), two.codePoints().toArray());
    }

    private static void check(List<String> names, Comparator<Integer> ties, String where) {
        Comparator<Integer> byName = (one, two) -> compareCodePoints(names.get(one), names.get(two));
        int[] expected = IntStream.range(0, names.size()).boxed().sorted(byName.thenComparing(ties)).mapToInt(i -> i).toArray();
        assertArrayEquals(expected, order(names, ties), where);
    }

    private static String text(Random dice, int most) {
        StringBuilder text = new StringBuilder();
        for (int n = dice.nextInt(most + 1); n > 0; n--) {
            text.append(CHARACTERS.get(dice.nextInt(CHARACTERS.size())));
        }
        return text.toString();
    }

    @Test
    void namesStandInTheOrderOfTheirCodePoints() {
        for (int seed = 0; seed < 600; seed++) {
            Random dice = new Random(seed);
            // The prefixes are longer and shorter than the bytes that are compared as one number; many names are equal.
            String common = text(dice, 12);
            List<String> prefixes = List.of(text(dice, 12), text(dice, 12), "");
            int most = 1 + dice.nextInt(4);
            List<String> names = IntStream.range(0, dice.nextInt(70))
                    .mapToObj(i -> common + prefixes.get(dice.nextInt(3)) + text(dice, most)).toList();
            Comparator<Integer> ties = dice.nextBoolean() ? Comparator.naturalOrder() : Comparator.reverseOrder();
            check(names, ties, "seed " + seed);
        }
    }

    @Test
    void manyNamesLeaveFewBitsForTheBytesAndStandInOrder() {
        Random dice = new Random(1);
        check(IntStream.range(0, 70_000).mapToObj(i -> "agent-" + dice.nextInt(50_000)).toList(), Comparator.reverseOrder(), "70,000");
    }

    @Test
    void equalNamesStandInTheOrderOfTheTies() {
        assertArrayEquals(new int[] {3, 2, 1, 0}, order(List.of("a", "a", "a", "a"), Comparator.reverseOrder()));
        assertArrayEquals(new int[] {0, 1, 2}, order(List.of("", "", ""), Comparator.naturalOrder()));
    }

    @Test
    void aNameStandsBeforeTheNamesThatItBegins() {
        assertArrayEquals(new int[] {2, 1, 0}, order(List.of("topic\0\0", "topic\0", "topic"), Comparator.naturalOrder()));
    }

    @Test
    void noNameAndOneNameAreInOrder() {
        assertEquals(0, order(List.of(), Comparator.naturalOrder()).length);
        assertArrayEquals(new int[] {0}, order(List.of("é"), Comparator.naturalOrder()));
    }
}
