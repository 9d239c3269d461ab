package azimuth.broker;

import java.util.AbstractMap;
import java.util.AbstractSet;
import java.util.Iterator;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.function.BiConsumer;
import org.apache.kafka.common.Uuid;

/**
 * Partitions of a member that has few topics; never changes.
 *
 * <p>The broker compares an assignment with the one before and writes it to its log. A hash map for each of 1,000 members
 * with ten topics takes longer to make and to read than the plan itself.
 */
final class FewTopics extends AbstractMap<Uuid, Set<Integer>> {
    /** Most topics: a look-up compares one after the other. */
    static final int MOST = 16;

    /** Not as ids: the check of their class would wait for the memory of each, and a plan needs nothing of them. */
    private final Object[] topics;
    private final Set<Integer>[] partitions;

    /**
     * Takes both arrays, and the caller gives them up.
     *
     * @param topics ids, each once
     * @param partitions of each
     */
    FewTopics(Object[] topics, Set<Integer>[] partitions) {
        this.topics = topics;
        this.partitions = partitions;
    }

    @Override
    public int size() {
        return topics.length;
    }

    @Override
    public Set<Integer> get(Object topic) {
        for (int i = 0; i < topics.length; i++) {
            if (topics[i].equals(topic)) {
                return partitions[i];
            }
        }
        return null;
    }

    @Override
    public boolean containsKey(Object topic) {
        return get(topic) != null;
    }

    @Override
    public void forEach(BiConsumer<? super Uuid, ? super Set<Integer>> action) {
        for (int i = 0; i < topics.length; i++) {
            action.accept((Uuid) topics[i], partitions[i]);
        }
    }

    @Override
    public Set<Map.Entry<Uuid, Set<Integer>>> entrySet() {
        return new Entries();
    }

    private final class Entries extends AbstractSet<Map.Entry<Uuid, Set<Integer>>> {
        @Override
        public int size() {
            return topics.length;
        }

        @Override
        public Iterator<Map.Entry<Uuid, Set<Integer>>> iterator() {
            return new Iterator<>() {
                private int next;

                @Override
                public boolean hasNext() {
                    return next < topics.length;
                }

                @Override
                public Map.Entry<Uuid, Set<Integer>> next() {
                    if (next >= topics.length) {
                        throw new NoSuchElementException();
                    }
                    return Map.entry((Uuid) topics[next], partitions[next++]);
                }
            };
        }
    }
}
