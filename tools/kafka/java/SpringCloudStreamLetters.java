import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.boot.autoconfigure.kafka.KafkaConnectionDetails;
import org.springframework.boot.autoconfigure.kafka.KafkaProperties;
import org.springframework.cloud.stream.binder.ExtendedConsumerProperties;
import org.springframework.cloud.stream.binder.kafka.KafkaMessageChannelBinder;
import org.springframework.cloud.stream.binder.kafka.properties.KafkaBinderConfigurationProperties;
import org.springframework.cloud.stream.binder.kafka.properties.KafkaConsumerProperties;
import org.springframework.cloud.stream.binder.kafka.provisioning.AdminClientConfigCustomizer;
import org.springframework.cloud.stream.binder.kafka.provisioning.KafkaTopicProvisioner;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.integration.channel.DirectChannel;
import org.springframework.integration.config.EnableIntegration;
import org.springframework.integration.handler.AbstractMessageHandler;
import org.springframework.messaging.Message;
import org.springframework.retry.support.RetryTemplate;

/**
 * Makes the Kafka binder of Spring Cloud Stream write a dead letter to the broker that the first argument names, and
 * prints it as DeadLetters.java does.
 */
public class SpringCloudStreamLetters {
  private static final String TOPIC = "orders.events.v1";
  private static final String GROUP = "orders-service";
  private static final long SENT_AT = 1_771_583_400_123L;

  @Configuration
  @EnableIntegration
  static class Application {}

  public static void main(String[] args) throws Exception {
    fail(args[0]);
    print(args[0], "error." + TOPIC + "." + GROUP);
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  private static void fail(String brokers) throws Exception {
    var boot = new KafkaProperties();
    boot.setBootstrapServers(List.of(brokers));
    var noDetails = new DefaultListableBeanFactory().getBeanProvider(KafkaConnectionDetails.class);
    var properties = new KafkaBinderConfigurationProperties(boot, noDetails);
    properties.setBrokers(brokers);
    var provisioner = new KafkaTopicProvisioner(properties, boot, List.<AdminClientConfigCustomizer>of());
    provisioner.setMetadataRetryOperations(new RetryTemplate());
    var context = new AnnotationConfigApplicationContext(Application.class);
    var binder = new KafkaMessageChannelBinder(properties, provisioner);
    binder.setApplicationContext(context);
    binder.afterPropertiesSet();

    var consumer = new KafkaConsumerProperties();
    consumer.setEnableDlq(true);
    consumer.setStartOffset(KafkaConsumerProperties.StartOffset.earliest);
    var extended = new ExtendedConsumerProperties<>(consumer);
    extended.setMaxAttempts(1);
    var input = new DirectChannel();
    input.setBeanFactory(context.getBeanFactory());
    input.setBeanName("orders-in-0");
    var handler = new AbstractMessageHandler() {
      @Override
      protected void handleMessageInternal(Message<?> message) {
        throw new IllegalStateException("customer 4711 is locked", new ArithmeticException("balance of 4711 is below 0"));
      }
    };
    handler.setBeanName("storeOrder");
    handler.setBeanFactory(context.getBeanFactory());
    handler.afterPropertiesSet();
    input.subscribe(handler);
    binder.bindConsumer(TOPIC, GROUP, input, extended);

    try (var producer = new KafkaProducer<byte[], byte[]>(
        Map.of("bootstrap.servers", brokers), new ByteArraySerializer(), new ByteArraySerializer())) {
      var record = new ProducerRecord<>(TOPIC, 0, SENT_AT, utf8("order-7c9e"), utf8("{\"order\":\"7c9e6679\"}"));
      record.headers().add("traceparent", utf8("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
      producer.send(record).get();
    }
  }

  private static void print(String brokers, String topic) {
    try (var consumer = new KafkaConsumer<byte[], byte[]>(
        Map.of("bootstrap.servers", brokers), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      var partition = List.of(new TopicPartition(topic, 0));
      consumer.assign(partition);
      consumer.seekToBeginning(partition);
      var records = consumer.poll(Duration.ofSeconds(1));
      while (records.isEmpty()) records = consumer.poll(Duration.ofSeconds(1));
      var record = records.iterator().next();
      StringBuilder line = new StringBuilder("spring-cloud-stream").append('\t').append(topic);
      line.append('\t').append(base64(record.key())).append('\t').append(base64(record.value()));
      for (var header : record.headers())
        line.append('\t').append(base64(utf8(header.key()))).append("=>").append(base64(header.value()));
      System.out.println(line);
    }
  }

  private static String base64(byte[] bytes) {
    return bytes == null ? "-" : Base64.getEncoder().encodeToString(bytes);
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
