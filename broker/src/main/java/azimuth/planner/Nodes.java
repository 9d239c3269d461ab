package azimuth.planner;

/** The node a member runs on, read from its identity: {@code host-1:2} and {@code host-1:3} run on {@code host-1}. */
final class Nodes {
    private static final int UUID_LENGTH = 36;

    private Nodes() {}

    /** Cuts one number or UUID, with the sign before it, from the end; a last line feed does not count as an end. */
    static String of(String identity) {
        int end = identity.length();
        boolean lineFeed = end > 0 && identity.charAt(end - 1) == '\n';
        if (lineFeed) {
            end--;
        }
        int start = end - UUID_LENGTH - 1;
        if (start < 0 || !isSign(identity.charAt(start)) || !isUuid(identity, start + 1)) {
            start = numberStart(identity, end);
        }
        return start < 0 ? identity : identity.substring(0, start) + (lineFeed ? "\n" : "");
    }

    private static int numberStart(String identity, int end) {
        int at = end;
        while (at > 0 && Character.isDigit(identity.codePointBefore(at))) {
            at -= Character.charCount(identity.codePointBefore(at));
        }
        return at < end && at > 0 && isSign(identity.charAt(at - 1)) ? at - 1 : -1;
    }

    private static boolean isSign(char c) {
        return "-_.:/".indexOf(c) >= 0;
    }

    private static boolean isUuid(String text, int from) {
        for (int i = 0; i < UUID_LENGTH; i++) {
            char c = text.charAt(from + i);
            boolean dash = i == 8 || i == 13 || i == 18 || i == 23;
            if (dash ? c != '-' : !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f')) {
                return false;
            }
        }
        return true;
    }
}
