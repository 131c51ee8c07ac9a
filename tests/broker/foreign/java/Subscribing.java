import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.qpid.jms.JmsConnectionFactory;

/** Topics: subscriptions that are durable, shared or without one's own messages; temporary nodes. */
final class Subscribing {
    private Subscribing() {}

    static void addTo(Map<String, Main.Use> uses) {
        uses.put("subscribe", Subscribing::subscribe);
        uses.put("durable", Subscribing::durable);
        uses.put("unsubscribe", Subscribing::unsubscribe);
        uses.put("shared", Subscribing::shared);
        uses.put("no-local", Subscribing::noLocal);
        uses.put("temporary", Subscribing::temporary);
        uses.put("request", Subscribing::request);
    }

    private static List<String> rest(JMSConsumer consumer) {
        List<String> found = new ArrayList<>();
        for (String text; (text = consumer.receiveBodyNoWait(String.class)) != null; ) {
            found.add(text);
        }
        return found;
    }

    /** TOPIC: all subscribers get a message, by their selectors. */
    private static void subscribe(Main main, String url, String[] arguments) {
        try (JMSContext context = new JmsConnectionFactory(url).createContext()) {
            Topic topic = context.createTopic(arguments[0]);
            JMSConsumer all = context.createConsumer(topic);
            JMSConsumer red = context.createConsumer(topic, "colour = 'red'");
            context.createProducer().setProperty("colour", "red").send(topic, "one");
            context.createProducer().setProperty("colour", "blue").send(topic, "two");
            main.say(rest(all));
            main.say(rest(red));
        }
    }

    /** TOPIC CLIENT NAME [SELECTOR]: what a durable subscription has; it stays. */
    private static void durable(Main main, String url, String[] arguments) {
        try (JMSContext context = new JmsConnectionFactory(url).createContext()) {
            context.setClientID(arguments[1]);
            String selector = arguments.length > 3 ? arguments[3] : null;
            Topic topic = context.createTopic(arguments[0]);
            try (JMSConsumer consumer = context.createDurableConsumer(topic, arguments[2], selector, false)) {
                main.say(rest(consumer));
            }
        }
    }

    /** CLIENT NAME: the end of a durable subscription. */
    private static void unsubscribe(Main main, String url, String[] arguments) throws JMSException {
        try (Connection connection = new JmsConnectionFactory(url).createConnection()) {
            connection.setClientID(arguments[0]);
            try (Session session = connection.createSession()) {
                session.unsubscribe(arguments[1]);
                main.say("unsubscribed");
            } catch (JMSException error) {
                main.say(Main.named(error));
            }
        }
    }

    /** TOPIC NAME durable|volatile [CLIENT]: two consumers share a subscription, and have its messages in turn. */
    private static void shared(Main main, String url, String[] arguments) {
        JmsConnectionFactory factory = new JmsConnectionFactory(url);
        try (JMSContext context = factory.createContext(); JMSContext publishing = factory.createContext()) {
            if (arguments.length > 3) {
                context.setClientID(arguments[3]);
            }
            Topic topic = context.createTopic(arguments[0]);
            boolean durable = arguments[2].equals("durable");
            List<JMSConsumer> consumers = new ArrayList<>();
            for (int count = 0; count < 2; count++) {
                consumers.add(
                        durable
                                ? context.createSharedDurableConsumer(topic, arguments[1])
                                : context.createSharedConsumer(topic, arguments[1]));
            }
            List<String> kept = rest(consumers.get(0));
            kept.addAll(rest(consumers.get(1)));
            main.say("kept " + kept.stream().sorted().toList());
            for (int count = 0; count < 10; count++) {
                publishing.createProducer().send(topic, "message " + count);
            }
            List<String> all = rest(consumers.get(0));
            all.addAll(rest(consumers.get(1)));
            main.say(all.stream().sorted().toList());
            consumers.forEach(JMSConsumer::close);
        }
    }

    /** TOPIC: of messages of two connections, the subscriber without its own gets the other's. */
    private static void noLocal(Main main, String url, String[] arguments) throws JMSException {
        try (Connection connection = Messages.connect(url);
                Connection other = Messages.connect(url);
                Session session = connection.createSession();
                Session elsewhere = other.createSession()) {
            Topic topic = session.createTopic(arguments[0]);
            MessageConsumer filtered = session.createConsumer(topic, null, true);
            MessageConsumer all = session.createConsumer(topic);
            session.createProducer(topic).send(session.createTextMessage("mine"));
            elsewhere.createProducer(topic).send(elsewhere.createTextMessage("theirs"));
            main.say(Acknowledging.rest(filtered));
            main.say(Acknowledging.rest(all));
        }
    }

    /** Temporary nodes live as long as their connection, which alone receives from them. */
    private static void temporary(Main main, String url, String[] arguments) throws JMSException {
        try (Connection connection = Messages.connect(url);
                Connection other = Messages.connect(url);
                Session session = connection.createSession();
                Session elsewhere = other.createSession()) {
            TemporaryTopic topic = session.createTemporaryTopic();
            MessageConsumer first = session.createConsumer(topic);
            MessageConsumer second = session.createConsumer(topic);
            elsewhere.createProducer(topic).send(elsewhere.createTextMessage("to the topic"));
            main.say(Acknowledging.next(first) + ", " + Acknowledging.next(second));
            TemporaryQueue queue = session.createTemporaryQueue();
            elsewhere.createProducer(queue).send(elsewhere.createTextMessage("to the queue"));
            MessageConsumer consumer = session.createConsumer(queue);
            main.say(Acknowledging.next(consumer));
            main.say(refused(elsewhere, queue));
            consumer.close();
            queue.delete();
            first.close();
            second.close();
            topic.delete();
            for (Destination deleted : List.of(queue, topic)) {
                try {
                    elsewhere.createProducer(deleted).send(elsewhere.createTextMessage("late"));
                    main.say("sent");
                } catch (JMSException error) {
                    main.say(error.getClass().getSimpleName());
                }
            }
        }
    }

    private static String refused(Session session, Destination destination) {
        try {
            session.createConsumer(destination).close();
            return "granted";
        } catch (JMSException error) {
            return error.getClass().getSimpleName();
        }
    }

    /** QUEUE: requests are answered to a temporary queue. */
    private static void request(Main main, String url, String[] arguments) throws JMSException {
        try (Connection connection = Messages.connect(url);
                Connection other = Messages.connect(url);
                Session client = connection.createSession();
                Session server = other.createSession()) {
            MessageConsumer requests = server.createConsumer(server.createQueue(arguments[0]));
            TemporaryQueue answers = client.createTemporaryQueue();
            MessageConsumer consumer = client.createConsumer(answers);
            TextMessage request = client.createTextMessage("question");
            request.setJMSReplyTo(answers);
            client.createProducer(client.createQueue(arguments[0])).send(request);
            Message asked = requests.receive(Messages.PATIENCE);
            TextMessage answer = server.createTextMessage("answer to " + asked.getBody(String.class));
            answer.setJMSCorrelationID(asked.getJMSMessageID());
            server.createProducer(asked.getJMSReplyTo()).send(answer);
            Message answered = consumer.receive(Messages.PATIENCE);
            main.say(answered.getBody(String.class));
            main.say(answered.getJMSCorrelationID().equals(request.getJMSMessageID()));
        }
    }
}
