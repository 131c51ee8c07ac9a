import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.TreeSet;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Session;
import javax.jms.TextMessage;
import org.apache.activemq.ActiveMQConnectionFactory;

/**
 * Programs of OpenWire (ActiveMQ's client) and of core (Artemis' own) that talk to an Artemis. A line on standard input
 * is a use, the URL of the Artemis, the protocol, and arguments, separated by tabs; what is observed are lines on
 * standard output, the last one "== done" or "== failed REASON".
 */
public final class Front {
    private static final long PATIENCE = 30_000;

    private final BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    private final PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] arguments) throws IOException {
        new Front().run();
    }

    private void run() throws IOException {
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split("\t", -1);
            try (Connection connection = factory(words[2], words[1]).createConnection()) {
                connection.start();
                use(words[0], connection, words);
                output.println("== done");
            } catch (Exception error) {
                error.printStackTrace();
                output.println("== failed " + error.getClass().getSimpleName() + ": " + error.getMessage());
            }
        }
    }

    private static ConnectionFactory factory(String protocol, String url) {
        return protocol.equals("openwire")
            ? new ActiveMQConnectionFactory(url)
            : new org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory(url);
    }

    private void use(String name, Connection connection, String[] words) throws Exception {
        boolean transacted = name.equals("send-transacted");
        Session session = connection.createSession(transacted, transacted ? 0 : Session.AUTO_ACKNOWLEDGE);
        Destination queue = session.createQueue(words[3]);
        switch (name) {
            case "send":
                send(session, queue, Integer.parseInt(words[4]));
                break;
            case "send-transacted":
                send(session, queue, Integer.parseInt(words[4]));
                session.rollback();
                send(session, queue, Integer.parseInt(words[4]));
                session.commit();
                break;
            case "types":
                types(session, queue);
                break;
            case "receive":
                receive(session, queue, Integer.parseInt(words[4]));
                break;
            case "request":
                request(session, queue, session.createQueue(words[4]));
                break;
            default:
                throw new IllegalArgumentException(name);
        }
    }

    private static void send(Session session, Destination queue, int count) throws Exception {
        MessageProducer producer = session.createProducer(queue);
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        for (int number = 0; number < count; number++) {
            producer.send(session.createTextMessage("text " + number));
        }
    }

    private static void types(Session session, Destination queue) throws Exception {
        MessageProducer producer = session.createProducer(queue);
        TextMessage text = session.createTextMessage("ä€");
        text.setStringProperty("colour", "red");
        text.setIntProperty("number", 5);
        text.setJMSType("note");
        text.setJMSCorrelationID("c-1");
        producer.send(text, DeliveryMode.PERSISTENT, 7, 0);
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(new byte[] {0, 1, (byte) 255});
        producer.send(bytes, DeliveryMode.NON_PERSISTENT, 4, 0);
    }

    private void receive(Session session, Destination queue, int count) throws Exception {
        MessageConsumer consumer = session.createConsumer(queue);
        for (int number = 0; number < count; number++) {
            report(consumer.receive(PATIENCE));
        }
    }

    /** Asks for something, and reports the answer, which has the request's correlation id. */
    private void request(Session session, Destination queue, Destination answers) throws Exception {
        MessageConsumer consumer = session.createConsumer(answers, "JMSCorrelationID = 'q-1'");
        TextMessage question = session.createTextMessage("2 3");
        question.setJMSReplyTo(answers);
        question.setJMSCorrelationID("q-1");
        session.createProducer(queue).send(question);
        report(consumer.receive(PATIENCE));
    }

    private void report(Message message) throws Exception {
        if (message == null) {
            throw new IOException("no message within " + PATIENCE + " ms");
        }
        StringBuilder line = new StringBuilder();
        if (message instanceof TextMessage) {
            line.append("text ").append(((TextMessage) message).getText());
        } else if (message instanceof BytesMessage) {
            line.append("bytes ");
            byte[] body = new byte[(int) ((BytesMessage) message).getBodyLength()];
            ((BytesMessage) message).readBytes(body);
            for (byte each : body) {
                line.append(String.format("%02x", each));
            }
        } else {
            line.append(message.getClass().getSimpleName());
        }
        @SuppressWarnings("unchecked")
        TreeSet<String> names = new TreeSet<>(Collections.list(message.getPropertyNames()));
        for (String name : names) {
            if (!name.startsWith("JMS") && !name.startsWith("_") && !name.startsWith("NATIVE")) {
                line.append(" | ").append(name).append("=").append(message.getObjectProperty(name));
            }
        }
        output.println(line);
    }
}
