package azimuth.planner;

/**
 * The number of each topic, in one table without nodes and boxes: a plan looks up every claim and waits for the memory.
 *
 * <p>A group without claims does not need the table.
 */
final class TopicNumbers {
    private final Object[] topics;
    private Object[] keys;
    private int[] numbers;

    /**
     * Takes the topics.
     *
     * @param topics in the order of their numbers
     */
    TopicNumbers(Object[] topics) {
        this.topics = topics;
    }

    /** The number of a topic, or -1. */
    int of(Object topic) {
        if (keys == null) {
            fill();
        }
        if (topic == null) {
            return -1;
        }
        int at = slot(topic);
        return keys[at] == null ? -1 : numbers[at];
    }

    private void fill() {
        int slots = 4 * Integer.highestOneBit(Math.max(topics.length, 1));
        keys = new Object[slots];
        numbers = new int[slots];
        for (int t = 0; t < topics.length; t++) {
            int at = slot(topics[t]);
            keys[at] = topics[t];
            numbers[at] = t;
        }
    }

    /** Where a topic is, or would be: linear probing, with the hash spread as in Java's maps. */
    private int slot(Object topic) {
        int hash = topic.hashCode();
        int at = (hash ^ hash >>> 16) & keys.length - 1;
        while (keys[at] != null && keys[at] != topic && !keys[at].equals(topic)) {
            at = at + 1 & keys.length - 1;
        }
        return at;
    }
}
