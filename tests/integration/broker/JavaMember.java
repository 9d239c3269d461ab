import java.time.Duration;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** One Java consumer as a process: writes what it owns as lines of JSON, until SIGTERM, then leaves its group. */
final class JavaMember {
    public static void main(String[] args) throws InterruptedException {
        Properties config = new Properties();
        for (int i = 1; i < args.length; i++) {
            config.put(args[i].substring(0, args[i].indexOf('=')), args[i].substring(args[i].indexOf('=') + 1));
        }
        KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try {
                main.join();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }));
        try {
            consumer.subscribe(Pattern.compile(args[0]));
            Set<String> before = Set.of();
            while (true) {
                consumer.poll(Duration.ofMillis(100));
                Set<String> owned = new TreeSet<>();
                for (TopicPartition one : consumer.assignment()) {
                    owned.add("[\"" + one.topic() + "\"," + one.partition() + "]");
                }
                if (!owned.equals(before)) {
                    before = owned;
                    System.out.println("{\"event\":\"owns\",\"generation\":" + consumer.groupMetadata().generationId()
                            + ",\"partitions\":[" + String.join(",", owned) + "]}");
                }
            }
        } catch (WakeupException end) {
            consumer.close();
        }
    }
}
