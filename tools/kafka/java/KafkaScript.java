import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Does with the real Java clients what the lines of its input say, one command per line, words separated by tabs,
 * bytes in Base64, "-" for null. It ends without closing anything, so a transaction that was left open stays open.
 *
 *   codec NAME                                          for the producers made from here on
 *   produce TOPIC PARTITION KEY VALUE [NAME=VALUE]...   prints partition and offset
 *   begin ID, commit ID, abort ID                       a transaction of the producer with this transactional id
 *   send ID TOPIC PARTITION COUNT SIZE                  so many records of this size, flushed
 *   consume TOPIC                                       prints partition, offset and value of all committed records
 *   group GROUP TOPIC COUNT                             reads so many as a member of the group and commits
 */
public class KafkaScript {
  private final String brokers;
  private final Map<String, Producer<byte[], byte[]>> producers = new HashMap<>();
  private String codec = "none";
  private int sent = 0;

  private KafkaScript(String brokers) {
    this.brokers = brokers;
  }

  public static void main(String[] args) throws Exception {
    KafkaScript script = new KafkaScript(args[0]);
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) script.run(line.split("\t", -1));
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  private void run(String[] words) throws Exception {
    switch (words[0]) {
      case "codec" -> codec = words[1];
      case "produce" -> produce(words);
      case "begin" -> producer(words[1]).beginTransaction();
      case "commit" -> producer(words[1]).commitTransaction();
      case "abort" -> producer(words[1]).abortTransaction();
      case "send" -> send(words);
      case "consume" -> consume(words[1]);
      case "group" -> readAsMember(words[1], words[2], Integer.parseInt(words[3]));
      default -> throw new IllegalArgumentException(words[0]);
    }
  }

  private void produce(String[] words) throws Exception {
    Integer partition = words[2].equals("-") ? null : Integer.valueOf(words[2]);
    var record = new ProducerRecord<>(words[1], partition, bytes(words[3]), bytes(words[4]));
    for (int at = 5; at < words.length; at++) {
      String[] header = words[at].split("=>", -1);
      record.headers().add(new String(bytes(header[0]), "UTF-8"), bytes(header[1]));
    }
    var written = producer("codec:" + codec).send(record).get();
    System.out.println(written.partition() + "\t" + written.offset());
  }

  private void send(String[] words) {
    Producer<byte[], byte[]> producer = producer(words[1]);
    int size = Integer.parseInt(words[5]);
    for (int count = Integer.parseInt(words[4]); count > 0; count--) {
      String value = String.format("%-" + size + "s", words[1] + "-" + sent++);
      producer.send(new ProducerRecord<>(words[2], Integer.valueOf(words[3]), null, value.getBytes()));
    }
    producer.flush();
  }

  private void consume(String topic) {
    try (Consumer<byte[], byte[]> consumer = consumer(null)) {
      List<TopicPartition> partitions = new ArrayList<>();
      for (var info : consumer.partitionsFor(topic)) partitions.add(new TopicPartition(topic, info.partition()));
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
      while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition)))
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200)))
          System.out.println(record.partition() + "\t" + record.offset() + "\t" + text(record.value()));
    }
  }

  private void readAsMember(String group, String topic, int count) {
    try (Consumer<byte[], byte[]> consumer = consumer(group)) {
      consumer.subscribe(List.of(topic));
      for (int read = 0; read < count; ) read += consumer.poll(Duration.ofMillis(200)).count();
      consumer.commitSync();
    }
  }

  private Producer<byte[], byte[]> producer(String id) {
    return producers.computeIfAbsent(id, key -> {
      Map<String, Object> config = new HashMap<>(Map.of(
          "bootstrap.servers", brokers, "max.request.size", 104_857_600, "buffer.memory", 134_217_728L));
      if (id.startsWith("codec:")) config.put("compression.type", codec);
      else if (!id.equals("plain")) config.put("transactional.id", id);
      var made = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
      if (config.containsKey("transactional.id")) made.initTransactions();
      return made;
    });
  }

  private Consumer<byte[], byte[]> consumer(String group) {
    Map<String, Object> config = new HashMap<>(Map.of(
        "bootstrap.servers", brokers,
        "isolation.level", "read_committed",
        "auto.offset.reset", "earliest",
        "enable.auto.commit", "false",
        "max.poll.records", "1"));
    if (group != null) config.put("group.id", group);
    else config.put("max.poll.records", "500");
    return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
  }

  private static byte[] bytes(String word) {
    return word.equals("-") ? null : Base64.getDecoder().decode(word);
  }

  private static String text(byte[] bytes) {
    return bytes == null ? "-" : Base64.getEncoder().encodeToString(bytes);
  }
}
