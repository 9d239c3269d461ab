package azimuth.planner;

import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/**
 * Workers per topic by its name or a pattern: the most distinct members that may read it.
 *
 * <p>As in Python's planner: a key that could be a topic's name counts for the topic of this name. A key with a character
 * that no topic name can have is a regular expression for the whole name, the first that matches counts; {@code *} is
 * every topic.
 */
public final class WorkerCaps {
    /** No name has a cap. */
    public static final WorkerCaps NONE = new WorkerCaps(Map.of(), new LinkedHashMap<>());

    private static final Pattern NAME = Pattern.compile("[a-zA-Z0-9._-]*");

    // No topic's name has '=' or a comma, so a key with these characters, read as a pattern, would match no topic.
    private static final Pattern JOINED = Pattern.compile("=(\\d+|all)[,;]");

    private final Map<String, Integer> byName;
    private final Map<Pattern, Integer> byPattern;

    private WorkerCaps(Map<String, Integer> byName, Map<Pattern, Integer> byPattern) {
        this.byName = byName;
        this.byPattern = byPattern;
    }

    /**
     * Reads caps.
     *
     * @param text entries {@code key=number}, separated by spaces; the number {@code all} is no cap
     * @throws IllegalArgumentException an entry has no number, its key is no regular expression or has an entry already, or
     *     entries are separated by commas; the message names it
     */
    public static WorkerCaps read(String text) {
        Map<String, Integer> byName = new HashMap<>();
        Map<Pattern, Integer> byPattern = new LinkedHashMap<>();
        Set<String> keys = new HashSet<>();
        for (String entry : text.trim().split("\\s+")) {
            int end = entry.lastIndexOf('=');
            if (entry.isEmpty()) {
                continue;
            }
            if (end < 1) {
                throw new IllegalArgumentException(entry + ": need a topic or a pattern, '=' and a number");
            }
            if (JOINED.matcher(entry).find()) {
                throw new IllegalArgumentException(entry + ": separate the entries by spaces");
            }
            String key = entry.substring(0, end);
            int number = numberOf(entry, end);
            if (!keys.add(key)) {
                throw new IllegalArgumentException(entry + ": " + key + " has an entry already");
            }
            if (NAME.matcher(key).matches()) {
                byName.put(key, number);
            } else {
                byPattern.put(pattern(key), number);
            }
        }
        return new WorkerCaps(byName, byPattern);
    }

    /** Whether no topic has a cap here. */
    public boolean isEmpty() {
        return byName.isEmpty() && byPattern.isEmpty();
    }

    /** Cap of a topic; {@code otherwise} where no key matches. */
    public int of(String topic, int otherwise) {
        Integer named = byName.get(topic);
        if (named != null) {
            return named;
        }
        for (Map.Entry<Pattern, Integer> entry : byPattern.entrySet()) {
            if (entry.getKey().matcher(topic).matches()) {
                return entry.getValue();
            }
        }
        return otherwise;
    }

    private static int numberOf(String entry, int end) {
        try {
            return number(entry.substring(end + 1));
        } catch (IllegalArgumentException error) {
            throw new IllegalArgumentException(entry + ": " + error.getMessage(), error);
        }
    }

    private static Pattern pattern(String key) {
        try {
            return Pattern.compile(key.equals("*") ? ".*" : key);
        } catch (PatternSyntaxException error) {
            throw new IllegalArgumentException(key + ": not a regular expression (" + error.getDescription() + ")", error);
        }
    }

    /**
     * Reads a cap.
     *
     * @throws IllegalArgumentException it is neither a whole number from 1 on nor {@code all}
     */
    static int number(String text) {
        if (text.equals("all")) {
            return Planner.NO_CAP;
        }
        try {
            int number = Integer.parseInt(text);
            if (number >= 1) {
                return number;
            }
        } catch (NumberFormatException error) {
            // the same answer as for a number out of range
        }
        throw new IllegalArgumentException("need a whole number, 1 or more, or 'all'");
    }
}
