import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.Map;
import java.util.TreeSet;
import org.apache.qpid.jms.JmsConnectionFactory;

/** Connections: lost and made again, refused; errors that clients tell their programs. */
final class Connecting {
    private Connecting() {}

    static void addTo(Map<String, Main.Use> uses) {
        uses.put("failover", Connecting::failover);
        uses.put("failover-transaction", Connecting::failoverTransaction);
        uses.put("refused", Connecting::refused);
        uses.put("missing", Connecting::missing);
        uses.put("fill", Connecting::fill);
        uses.put("client-id", Connecting::clientId);
    }

    /** ID: a second connection with the same client id, and another one when the first has ended. */
    private static void clientId(Main main, String url, String[] arguments) throws Exception {
        JmsConnectionFactory factory = new JmsConnectionFactory(url);
        try (Connection first = factory.createConnection()) {
            first.setClientID(arguments[0]);
            first.start();
            try (Connection second = factory.createConnection()) {
                second.setClientID(arguments[0]);
                main.say("no error");
            } catch (JMSException error) {
                main.say(error.getClass().getSimpleName());
            }
        }
        try (Connection again = factory.createConnection()) {
            again.setClientID(arguments[0]);
            main.say("again");
        }
    }

    private static String reconnecting(String url) {
        return "failover:(" + url + ")?failover.initialReconnectDelay=0&failover.reconnectDelay=20"
                + "&failover.useReconnectBackOff=false";
    }

    /** QUEUE: what was sent before and after a cut is received; the consumer's unacknowledged message comes again. */
    private static void failover(Main main, String url, String[] arguments) throws Exception {
        TreeSet<String> received = new TreeSet<>();
        try (Connection connection = Messages.connect(reconnecting(url));
                Session sending = connection.createSession();
                Session receiving = connection.createSession(Session.CLIENT_ACKNOWLEDGE)) {
            Queue queue = sending.createQueue(arguments[0]);
            MessageProducer producer = sending.createProducer(queue);
            MessageConsumer consumer = receiving.createConsumer(queue);
            for (int count = 0; count < 10; count++) {
                producer.send(sending.createTextMessage("message " + count));
            }
            received.add(consumer.receive(Messages.PATIENCE).getBody(String.class));
            main.pause("cut");
            for (int count = 10; count < 20; count++) {
                producer.send(sending.createTextMessage("message " + count));
            }
            while (received.size() < 20) {
                Message message = consumer.receive(Messages.PATIENCE);
                if (message == null) {
                    break;
                }
                received.add(message.getBody(String.class));
                message.acknowledge();
            }
            main.say(received.size());
            main.say(Acknowledging.rest(consumer));
        }
    }

    /** QUEUE: a transaction that was open when the connection broke is rolled back; the next one is committed. */
    private static void failoverTransaction(Main main, String url, String[] arguments) throws Exception {
        try (Connection connection = Messages.connect(reconnecting(url));
                Session session = connection.createSession(Session.SESSION_TRANSACTED)) {
            Queue queue = session.createQueue(arguments[0]);
            Acknowledging.sendTexts(session, queue, "lost");
            main.pause("cut");
            try {
                session.commit();
                main.say("committed");
            } catch (JMSException error) {
                main.say(error.getClass().getSimpleName());
            }
            Acknowledging.sendTexts(session, queue, "kept");
            session.commit();
            try (MessageConsumer consumer = session.createConsumer(queue)) {
                main.say(Acknowledging.rest(consumer));
                session.commit();
            }
        }
    }

    /** USER PASSWORD: whether the broker lets this user in. */
    private static void refused(Main main, String url, String[] arguments) {
        try (Connection connection = new JmsConnectionFactory(arguments[0], arguments[1], url).createConnection()) {
            connection.start();
            main.say("connected");
        } catch (JMSException error) {
            main.say(Main.named(error));
        }
    }

    /** QUEUE: there is no such queue; the connection stays of use. */
    private static void missing(Main main, String url, String[] arguments) throws JMSException {
        try (Connection connection = Messages.connect(url); Session session = connection.createSession()) {
            Queue queue = session.createQueue(arguments[0]);
            try {
                session.createConsumer(queue);
                main.say("granted");
            } catch (JMSException error) {
                main.say(Main.named(error));
            }
            try {
                session.createProducer(queue);
                main.say("granted");
            } catch (JMSException error) {
                main.say(Main.named(error));
            }
            session.createTemporaryQueue().delete();
        }
    }

    /** QUEUE COUNT: messages until the queue is full. */
    private static void fill(Main main, String url, String[] arguments) throws JMSException {
        try (Connection connection = Messages.connect(url); Session session = connection.createSession()) {
            MessageProducer producer = session.createProducer(session.createQueue(arguments[0]));
            for (int count = 0; count < Integer.parseInt(arguments[1]); count++) {
                try {
                    producer.send(session.createTextMessage("message " + count));
                } catch (JMSException error) {
                    main.say(count + " " + Main.named(error));
                    return;
                }
            }
        }
    }
}
