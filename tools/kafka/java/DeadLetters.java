import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.runtime.ConnectMetrics;
import org.apache.kafka.connect.runtime.SinkConnectorConfig;
import org.apache.kafka.connect.runtime.errors.DeadLetterQueueReporter;
import org.apache.kafka.connect.runtime.errors.ErrorHandlingMetrics;
import org.apache.kafka.connect.runtime.errors.ProcessingContext;
import org.apache.kafka.connect.runtime.errors.RetryWithToleranceOperator;
import org.apache.kafka.connect.runtime.errors.Stage;
import org.apache.kafka.connect.runtime.errors.ToleranceType;
import org.apache.kafka.connect.runtime.isolation.Plugins;
import org.apache.kafka.connect.runtime.standalone.StandaloneConfig;
import org.apache.kafka.connect.sink.SinkTask;
import org.apache.kafka.connect.util.ConnectorTaskId;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.LogAndContinueExceptionHandler;
import org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler;

/**
 * Makes Kafka Connect and Kafka Streams write dead letters to the broker that the first argument names. Prints one
 * line for each: a name, the topic, then key, value and headers (NAME=>VALUE) in Base64, "-" for null, separated by
 * tabs.
 */
public class DeadLetters {
  private static final String TOPIC = "orders.events.v1";
  private static final byte[] KEY = utf8("order-7c9e");
  private static final byte[] TRACE = utf8("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  private static final long SENT_AT = 1_771_583_400_123L;

  private final String brokers;

  private DeadLetters(String brokers) {
    this.brokers = brokers;
  }

  public static void main(String[] args) throws Exception {
    DeadLetters letters = new DeadLetters(args[0]);
    letters.createTopics(TOPIC, "orders-sink.dlq", "orders-streams.dlq");
    letters.failInConnect();
    letters.failInStreams();
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  /** A value that the converter cannot read, and one that the sink task refuses. */
  private void failInConnect() throws Exception {
    ConnectorTaskId task = new ConnectorTaskId("orders-sink", 0);
    Map<String, Object> clients = Map.of("bootstrap.servers", brokers);
    Map<String, Object> producer = new HashMap<>(clients);
    producer.put("key.serializer", ByteArraySerializer.class.getName());
    producer.put("value.serializer", ByteArraySerializer.class.getName());
    Map<String, String> worker = Map.of(
        "bootstrap.servers", brokers,
        "key.converter", JsonConverter.class.getName(),
        "value.converter", JsonConverter.class.getName(),
        "offset.storage.file.filename", "/dev/null");
    Map<String, String> connector = Map.of(
        "name", task.connector(),
        "connector.class", "com.acme.orders.OrdersSink",
        "topics", TOPIC,
        "errors.tolerance", "all",
        "errors.deadletterqueue.topic.name", "orders-sink.dlq",
        "errors.deadletterqueue.topic.replication.factor", "1",
        "errors.deadletterqueue.context.headers.enable", "true");
    var config = new SinkConnectorConfig(new Plugins(Map.of()), connector);
    var metrics = new ErrorHandlingMetrics(
        task, new ConnectMetrics("worker", new StandaloneConfig(worker), Time.SYSTEM, "cluster"));
    var reporter = DeadLetterQueueReporter.createAndSetup(clients, task, config, producer, metrics);
    var operator = new RetryWithToleranceOperator<ConsumerRecord<byte[], byte[]>>(
        0, 0, ToleranceType.ALL, Time.SYSTEM, metrics);
    operator.reporters(List.of(reporter));

    JsonConverter converter = new JsonConverter();
    converter.configure(Map.of("schemas.enable", "false"), false);
    byte[] malformed = utf8("{\"order\":");
    operator.execute(
        new ProcessingContext<>(consumed(42, malformed)),
        () -> converter.toConnectData(TOPIC, malformed),
        Stage.VALUE_CONVERTER,
        JsonConverter.class);
    var refused = new ProcessingContext<>(consumed(43, utf8("{\"order\":\"7c9e6679\"}")));
    operator.executeFailed(refused, Stage.TASK_PUT, SinkTask.class, locked()).get();
    reporter.close();
    print(List.of("kafka-connect-converter", "kafka-connect-sink-task"), "orders-sink.dlq");
  }

  private static ConsumerRecord<byte[], byte[]> consumed(long offset, byte[] value) {
    var headers = new RecordHeaders().add("traceparent", TRACE);
    return new ConsumerRecord<>(TOPIC, 3, offset, SENT_AT, TimestampType.CREATE_TIME, KEY.length, value.length,
        KEY, value, headers, java.util.Optional.empty());
  }

  /** A value that is no long, and one for which the topology throws. */
  private void failInStreams() throws Exception {
    try (var producer = new KafkaProducer<byte[], byte[]>(
        Map.of("bootstrap.servers", brokers), new ByteArraySerializer(), new ByteArraySerializer())) {
      for (byte[] value : List.of(utf8("{}"), new byte[] {0, 0, 0, 0, 0, 0, 18, 103})) {
        var record = new ProducerRecord<>(TOPIC, 0, SENT_AT, KEY, value);
        record.headers().add("traceparent", TRACE);
        producer.send(record).get();
      }
    }
    StreamsBuilder builder = new StreamsBuilder();
    var failures = new CountDownLatch(1);
    builder.<String, Long>stream(TOPIC).foreach((key, value) -> {
      failures.countDown();
      throw locked();
    });
    Properties config = new Properties();
    config.put(StreamsConfig.APPLICATION_ID_CONFIG, "orders-streams");
    config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
    config.put(StreamsConfig.STATE_DIR_CONFIG, System.getProperty("java.io.tmpdir") + "/dead-letters-" + ProcessHandle.current().pid());
    config.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    config.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.LongSerde.class);
    config.put("auto.offset.reset", "earliest");
    config.put(StreamsConfig.ERRORS_DEAD_LETTER_QUEUE_TOPIC_NAME_CONFIG, "orders-streams.dlq");
    config.put(StreamsConfig.DESERIALIZATION_EXCEPTION_HANDLER_CLASS_CONFIG, LogAndContinueExceptionHandler.class);
    config.put(StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG, LogAndContinueProcessingExceptionHandler.class);
    try (KafkaStreams streams = new KafkaStreams(builder.build(), config)) {
      streams.start();
      failures.await();
    }
    print(List.of("kafka-streams-deserialization", "kafka-streams-processing"), "orders-streams.dlq");
  }

  private static RuntimeException locked() {
    return new IllegalStateException("customer 4711 is locked", new ArithmeticException("balance of 4711 is below 0"));
  }

  private void createTopics(String... names) throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", brokers))) {
      var topics = new ArrayList<NewTopic>();
      for (String name : names) topics.add(new NewTopic(name, 1, (short) 1));
      admin.createTopics(topics).all().get();
    }
  }

  private void print(List<String> names, String topic) {
    try (var consumer = new KafkaConsumer<byte[], byte[]>(
        Map.of("bootstrap.servers", brokers), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      var partition = List.of(new TopicPartition(topic, 0));
      consumer.assign(partition);
      consumer.seekToBeginning(partition);
      int at = 0;
      while (at < names.size()) {
        for (var record : consumer.poll(Duration.ofSeconds(1))) {
          StringBuilder line = new StringBuilder(names.get(at++)).append('\t').append(topic);
          line.append('\t').append(base64(record.key())).append('\t').append(base64(record.value()));
          for (var header : record.headers())
            line.append('\t').append(base64(utf8(header.key()))).append("=>").append(base64(header.value()));
          System.out.println(line);
        }
      }
    }
  }

  private static String base64(byte[] bytes) {
    return bytes == null ? "-" : Base64.getEncoder().encodeToString(bytes);
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
