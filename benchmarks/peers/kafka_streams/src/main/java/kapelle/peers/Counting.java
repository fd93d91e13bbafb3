package kapelle.peers;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.message.BinaryMessageDecoder;
import org.apache.avro.message.BinaryMessageEncoder;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * The counting fold on Kafka Streams: exactly_once_v2, one thread, RocksDB with its cache (so that the changelog gets
 * the last value of each key per commit), generic Avro records in single-object encoding.
 *
 * <p>Arguments: --bootstrap-servers HOST:PORT --prefix P --state-dir DIR [--commit-ms 100]
 */
public final class Counting {
    private static final String STORE = "counts";
    private static final Schema TICK = schema("Tick");
    private static final Schema COUNTED = schema("Counted");

    public static void main(String[] arguments) throws InterruptedException {
        Map<String, String> options = new HashMap<>(Map.of("--commit-ms", "100"));
        for (int index = 0; index + 1 < arguments.length; index += 2) {
            options.put(arguments[index], arguments[index + 1]);
        }
        String prefix = options.get("--prefix");
        KafkaStreams streams = new KafkaStreams(topology(prefix), settings(prefix, options));
        CountDownLatch stopped = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close(Duration.ofSeconds(10));
            stopped.countDown();
        }));
        streams.start();
        stopped.await();
    }

    private static Properties settings(String prefix, Map<String, String> options) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, prefix + ".counting");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, options.get("--bootstrap-servers"));
        settings.put(StreamsConfig.STATE_DIR_CONFIG, options.get("--state-dir"));
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, options.get("--commit-ms"));
        settings.put(StreamsConfig.POLL_MS_CONFIG, options.get("--commit-ms")); // it looks at the interval between polls
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, "1");
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, "1");
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        return settings;
    }

    private static Topology topology(String prefix) {
        StoreBuilder<KeyValueStore<String, Long>> store =
                Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(STORE), Serdes.String(), Serdes.Long())
                        .withCachingEnabled();
        ProcessorSupplier<String, Bytes, String, Bytes> fold = Fold::new;
        return new Topology()
                .addSource(
                        "ticks",
                        Serdes.String().deserializer(),
                        Serdes.Bytes().deserializer(),
                        prefix + ".ticks")
                .addProcessor("counting", fold, "ticks")
                .addStateStore(store, "counting")
                .addSink(
                        "events",
                        prefix + ".counting.events",
                        Serdes.String().serializer(),
                        Serdes.Bytes().serializer(),
                        "counting");
    }

    private static Schema schema(String name) {
        try (InputStream file = Counting.class.getResourceAsStream("/" + name + ".avsc")) {
            return new Schema.Parser().parse(file);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** One task's fold: a counter per key, one output per record. */
    private static final class Fold implements Processor<String, Bytes, String, Bytes> {
        private static final byte[] VERSION = bytes("1.0");
        private static final byte[] SOURCE = bytes("/counting");
        private static final byte[] TYPE = bytes(COUNTED.getFullName());

        private final BinaryMessageDecoder<GenericRecord> decoder =
                new BinaryMessageDecoder<>(GenericData.get(), TICK);
        private final BinaryMessageEncoder<GenericRecord> encoder =
                new BinaryMessageEncoder<>(GenericData.get(), COUNTED);
        private ProcessorContext<String, Bytes> context;
        private KeyValueStore<String, Long> counts;

        @Override
        public void init(ProcessorContext<String, Bytes> context) {
            this.context = context;
            this.counts = context.getStateStore(STORE);
        }

        @Override
        public void process(Record<String, Bytes> record) {
            try {
                GenericRecord tick = decoder.decode(record.value().get());
                Long before = counts.get(record.key());
                long count = before == null ? 1 : before + 1;
                counts.put(record.key(), count);
                context.forward(record.withValue(encoded(tick, count)).withHeaders(headers()));
            } catch (IOException failure) {
                throw new UncheckedIOException(failure);
            }
        }

        private Bytes encoded(GenericRecord tick, long count) throws IOException {
            GenericRecord counted = new GenericData.Record(COUNTED);
            counted.put("id", tick.get("id"));
            counted.put("word", tick.get("word"));
            counted.put("count", count);
            ByteBuffer buffer = encoder.encode(counted);
            byte[] value = new byte[buffer.remaining()];
            buffer.get(value);
            return Bytes.wrap(value);
        }

        private RecordHeaders headers() {
            String id = context.recordMetadata()
                    .map(origin -> "ticks/" + origin.partition() + "/" + origin.offset())
                    .orElse("");
            RecordHeaders headers = new RecordHeaders();
            headers.add("ce_specversion", VERSION);
            headers.add("ce_id", bytes(id));
            headers.add("ce_source", SOURCE);
            headers.add("ce_type", TYPE);
            headers.add("ce_time", bytes(Instant.now().toString()));
            return headers;
        }
    }
}
