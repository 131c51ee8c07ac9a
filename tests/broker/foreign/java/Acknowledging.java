import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TransactionRolledBackException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.qpid.jms.JmsTransactionInDoubtException;

/** What becomes of messages that were received: acknowledged, recovered, redelivered; transactions. */
final class Acknowledging {
    /** The mode of qpid-jms in which each message is acknowledged by itself. */
    private static final int INDIVIDUAL = 101;

    private Acknowledging() {}

    static void addTo(Map<String, Main.Use> uses) {
        uses.put("recover", Acknowledging::recover);
        uses.put("individual", Acknowledging::individual);
        uses.put("listen", Acknowledging::listen);
        uses.put("give-up", Acknowledging::giveUp);
        uses.put("transact", Acknowledging::transact);
        uses.put("transactions", Acknowledging::transactions);
        uses.put("abandon", Acknowledging::abandon);
    }

    static void sendTexts(Session session, Queue queue, String... texts) throws JMSException {
        try (MessageProducer producer = session.createProducer(queue)) {
            for (String text : texts) {
                producer.send(session.createTextMessage(text));
            }
        }
    }

    /** The text of the next message, with its delivery count if it was delivered before. */
    static String next(MessageConsumer consumer) throws JMSException {
        return described(consumer.receive(Messages.PATIENCE));
    }

    private static String described(Message message) throws JMSException {
        if (message == null) {
            return "nothing";
        }
        String count = message.getJMSRedelivered() ? " again, " + message.getIntProperty("JMSXDeliveryCount") : "";
        return message.getBody(String.class) + count;
    }

    /** The messages that are there. */
    static List<String> rest(MessageConsumer consumer) throws JMSException {
        List<String> found = new ArrayList<>();
        for (Message message; (message = consumer.receiveNoWait()) != null; ) {
            found.add(described(message));
        }
        return found;
    }

    /** QUEUE: a session that acknowledges when the program says so, and recovers. */
    private static void recover(Main main, String url, String[] arguments) throws JMSException {
        try (Connection connection = Messages.connect(url);
                Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE)) {
            Queue queue = session.createQueue(arguments[0]);
            sendTexts(session, queue, "one", "two", "three");
            try (MessageConsumer consumer = session.createConsumer(queue)) {
                main.say(next(consumer) + ", " + next(consumer));
                session.recover();
                main.say(next(consumer) + ", " + next(consumer));
                session.recover();
                Message last = null;
                for (int count = 0; count < 2; count++) {
                    last = consumer.receive(Messages.PATIENCE);
                    main.say(described(last));
                }
                last.acknowledge();
                main.say(next(consumer));
                session.recover();
                main.say(rest(consumer));
            }
        }
        // What was not acknowledged before the session ended comes once more.
        try (Connection connection = Messages.connect(url); Session session = connection.createSession()) {
            try (MessageConsumer consumer = session.createConsumer(session.createQueue(arguments[0]))) {
                main.say(rest(consumer));
            }
        }
    }

    /** QUEUE: of three messages the second is acknowledged alone. */
    private static void individual(Main main, String url, String[] arguments) throws JMSException {
        try (Connection connection = Messages.connect(url); Session session = connection.createSession(INDIVIDUAL)) {
            Queue queue = session.createQueue(arguments[0]);
            sendTexts(session, queue, "one", "two", "three");
            try (MessageConsumer consumer = session.createConsumer(queue)) {
                consumer.receive(Messages.PATIENCE);
                consumer.receive(Messages.PATIENCE).acknowledge();
                consumer.receive(Messages.PATIENCE);
            }
        }
        try (Connection connection = Messages.connect(url); Session session = connection.createSession()) {
            try (MessageConsumer consumer = session.createConsumer(session.createQueue(arguments[0]))) {
                main.say(rest(consumer));
            }
        }
    }

    /** QUEUE: messages are given to a listener, and sends are completed in the background. */
    private static void listen(Main main, String url, String[] arguments) throws Exception {
        LinkedBlockingQueue<String> heard = new LinkedBlockingQueue<>();
        LinkedBlockingQueue<String> completed = new LinkedBlockingQueue<>();
        try (Connection connection = Messages.connect(url);
                Session receiving = connection.createSession();
                Session sending = connection.createSession()) {
            Queue queue = receiving.createQueue(arguments[0]);
            receiving.createConsumer(queue).setMessageListener(message -> {
                try {
                    heard.add(message.getBody(String.class));
                } catch (JMSException error) {
                    heard.add(Main.named(error));
                }
            });
            MessageProducer producer = sending.createProducer(queue);
            for (int count = 0; count < 3; count++) {
                producer.send(sending.createTextMessage("message " + count), new Completion(completed));
            }
            for (int count = 0; count < 3; count++) {
                main.say(heard.poll(Messages.PATIENCE, TimeUnit.MILLISECONDS));
            }
            for (int count = 0; count < 3; count++) {
                main.say(completed.poll(Messages.PATIENCE, TimeUnit.MILLISECONDS));
            }
        }
    }

    /** QUEUE: a message is recovered until the client gives it up, and the next one is received. */
    private static void giveUp(Main main, String url, String[] arguments) throws JMSException {
        try (Connection connection = Messages.connect(url);
                Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE)) {
            Queue queue = session.createQueue(arguments[0]);
            sendTexts(session, queue, "one", "two");
            try (MessageConsumer consumer = session.createConsumer(queue)) {
                for (Message message = consumer.receive(Messages.PATIENCE); ; ) {
                    main.say(described(message));
                    if (message.getBody(String.class).equals("two")) {
                        message.acknowledge();
                        return;
                    }
                    session.recover();
                    message = consumer.receive(Messages.PATIENCE);
                }
            }
        }
    }

    /** QUEUE: sends and receives that are committed or rolled back. */
    private static void transact(Main main, String url, String[] arguments) throws JMSException {
        try (Connection connection = Messages.connect(url);
                Session session = connection.createSession(Session.SESSION_TRANSACTED);
                Session other = connection.createSession()) {
            Queue queue = session.createQueue(arguments[0]);
            sendTexts(session, queue, "lost");
            session.rollback();
            sendTexts(session, queue, "one", "two", "three");
            try (MessageConsumer consumer = other.createConsumer(queue)) {
                main.say("before the commit " + rest(consumer));
            }
            session.commit();
            try (MessageConsumer consumer = session.createConsumer(queue)) {
                main.say(next(consumer) + ", " + next(consumer));
                session.rollback();
                main.say(next(consumer) + ", " + next(consumer));
                sendTexts(session, queue, "four");
                session.commit();
                main.say(next(consumer) + ", " + next(consumer));
                session.rollback();
            }
            try (MessageConsumer consumer = session.createConsumer(queue)) {
                main.say(next(consumer) + ", " + next(consumer));
                session.commit();
                main.say("after the last commit " + rest(consumer));
            }
        }
    }

    /** FROM TO: two transactions of one connection at the same time move messages from a queue to another one. */
    private static void transactions(Main main, String url, String[] arguments) throws JMSException {
        try (Connection connection = Messages.connect(url);
                Session first = connection.createSession(Session.SESSION_TRANSACTED);
                Session second = connection.createSession(Session.SESSION_TRANSACTED)) {
            Queue from = first.createQueue(arguments[0]);
            Queue to = first.createQueue(arguments[1]);
            sendTexts(first, from, "one", "two");
            first.commit();
            MessageConsumer firstConsumer = first.createConsumer(from);
            sendTexts(first, to, "first moved " + next(firstConsumer));
            MessageConsumer secondConsumer = second.createConsumer(from);
            sendTexts(second, to, "second moved " + next(secondConsumer));
            first.rollback();
            second.commit();
            try (Session reading = connection.createSession(); MessageConsumer moved = reading.createConsumer(to)) {
                main.say(rest(moved));
            }
            main.say(next(firstConsumer));
            first.commit();
        }
    }

    /** QUEUE: a connection ends within a transaction; a full queue makes another one fail. */
    private static void abandon(Main main, String url, String[] arguments) throws JMSException {
        try (Connection connection = Messages.connect(url)) {
            Session session = connection.createSession(Session.SESSION_TRANSACTED);
            sendTexts(session, session.createQueue(arguments[0]), "abandoned");
        }
        try (Connection connection = Messages.connect(url);
                Session session = connection.createSession(Session.SESSION_TRANSACTED)) {
            Queue queue = session.createQueue(arguments[0]);
            sendTexts(session, queue, "one");
            session.commit();
            try {
                sendTexts(session, queue, "too", "many", "for", "it");
                session.commit();
            } catch (TransactionRolledBackException | JmsTransactionInDoubtException error) {
                // Releases of qpid-jms differ in what they throw for one that the broker has rolled back.
                main.say(error.getMessage());
            }
            try (MessageConsumer consumer = session.createConsumer(queue)) {
                main.say(next(consumer));
                session.commit();
                main.say(rest(consumer));
            }
        }
    }

    /** Says when a message has arrived. */
    private record Completion(LinkedBlockingQueue<String> completed) implements jakarta.jms.CompletionListener {
        @Override
        public void onCompletion(Message message) {
            completed.add("sent");
        }

        @Override
        public void onException(Message message, Exception error) {
            completed.add(Main.named(error));
        }
    }
}
