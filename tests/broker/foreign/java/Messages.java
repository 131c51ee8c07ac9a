import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.qpid.jms.JmsConnectionFactory;

/** Sending, receiving and browsing: every type of message, with properties and headers. */
final class Messages {
    /** Milliseconds that anything may take. */
    static final long PATIENCE = 30_000;

    private Messages() {}

    static void addTo(Map<String, Main.Use> uses) {
        uses.put("send", Messages::send);
        uses.put("receive", Messages::receive);
        uses.put("browse", Messages::browse);
        uses.put("types", Messages::types);
        uses.put("large", Messages::large);
    }

    static Connection connect(String url) throws JMSException {
        Connection connection = new JmsConnectionFactory(url).createConnection();
        connection.start();
        return connection;
    }

    static Destination destination(Session session, String name) throws JMSException {
        return name.startsWith("topic:") ? session.createTopic(name.substring(6)) : session.createQueue(name);
    }

    /** DESTINATION MESSAGE...: a message is written NAME=VALUE,...; names with a prefix such as "i:" are properties. */
    private static void send(Main main, String url, String[] arguments) throws JMSException {
        try (Connection connection = connect(url); Session session = connection.createSession()) {
            Destination to = destination(session, arguments[0]);
            // Without a destination of its own, the producer sends to the anonymous relay.
            try (MessageProducer producer = session.createProducer(null)) {
                for (int index = 1; index < arguments.length; index++) {
                    sendOne(session, producer, to, arguments[index]);
                }
            }
        }
    }

    private static void sendOne(Session session, MessageProducer producer, Destination to, String text)
            throws JMSException {
        TextMessage message = session.createTextMessage();
        int mode = DeliveryMode.PERSISTENT;
        int priority = Message.DEFAULT_PRIORITY;
        long ttl = 0;
        producer.setDeliveryDelay(0);
        for (String pair : text.split(",")) {
            String name = pair.substring(0, pair.indexOf('='));
            String value = pair.substring(pair.indexOf('=') + 1);
            switch (name) {
                case "text" -> message.setText(value);
                case "correlation" -> message.setJMSCorrelationID(value);
                case "type" -> message.setJMSType(value);
                case "transient" -> mode = DeliveryMode.NON_PERSISTENT;
                case "priority" -> priority = Integer.parseInt(value);
                case "ttl" -> ttl = Long.parseLong(value);
                case "delay" -> producer.setDeliveryDelay(Long.parseLong(value));
                default -> setProperty(message, name.charAt(0), name.substring(2), value);
            }
        }
        producer.send(to, message, mode, priority, ttl);
    }

    private static void setProperty(Message message, char type, String name, String value) throws JMSException {
        switch (type) {
            case 'i' -> message.setIntProperty(name, Integer.parseInt(value));
            case 'l' -> message.setLongProperty(name, Long.parseLong(value));
            case 'f' -> message.setFloatProperty(name, Float.parseFloat(value));
            case 'd' -> message.setDoubleProperty(name, Double.parseDouble(value));
            case 'b' -> message.setBooleanProperty(name, Boolean.parseBoolean(value));
            default -> message.setStringProperty(name, value);
        }
    }

    /** DESTINATION COUNT [SELECTOR]: the texts of so many messages, or of all that are there with the count "all". */
    private static void receive(Main main, String url, String[] arguments) throws JMSException {
        String selector = arguments.length > 2 ? arguments[2] : null;
        try (Connection connection = connect(url);
                Session session = connection.createSession();
                MessageConsumer consumer = session.createConsumer(destination(session, arguments[0]), selector)) {
            if (arguments[1].equals("all")) {
                // This asks the broker to use up the credit or to return it: what is there arrives.
                for (Message message; (message = consumer.receiveNoWait()) != null; ) {
                    main.say(message.getBody(String.class));
                }
                return;
            }
            for (int count = Integer.parseInt(arguments[1]); count > 0; count--) {
                Message message = consumer.receive(PATIENCE);
                main.say(message == null ? "nothing" : message.getBody(String.class));
            }
        }
    }

    /** QUEUE [SELECTOR]: the texts of all messages, which stay. */
    private static void browse(Main main, String url, String[] arguments) throws JMSException {
        String selector = arguments.length > 1 ? arguments[1] : null;
        try (Connection connection = connect(url); Session session = connection.createSession()) {
            Queue queue = session.createQueue(arguments[0]);
            try (QueueBrowser browser = session.createBrowser(queue, selector)) {
                for (Enumeration<?> found = browser.getEnumeration(); found.hasMoreElements(); ) {
                    main.say(((Message) found.nextElement()).getBody(String.class));
                }
            } catch (JMSException error) {
                main.say(Main.named(error));
            }
        }
    }

    /** QUEUE send|receive: one message of each type. */
    private static void types(Main main, String url, String[] arguments) throws JMSException {
        try (Connection connection = connect(url); Session session = connection.createSession()) {
            Queue queue = session.createQueue(arguments[0]);
            if (arguments[1].equals("send")) {
                try (MessageProducer producer = session.createProducer(queue)) {
                    for (Message message : oneOfEach(session)) {
                        producer.send(message);
                    }
                }
                return;
            }
            try (MessageConsumer consumer = session.createConsumer(queue)) {
                for (Message message; (message = consumer.receiveNoWait()) != null; ) {
                    main.say(described(message));
                }
            }
        }
    }

    private static List<Message> oneOfEach(Session session) throws JMSException {
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(new byte[] {0, 1, (byte) 0xff});
        bytes.writeUTF("ü");
        MapMessage map = session.createMapMessage();
        map.setBoolean("boolean", true);
        map.setByte("byte", (byte) -1);
        map.setChar("char", 'ß');
        map.setBytes("bytes", new byte[] {1, 2});
        map.setDouble("double", 0.1);
        map.setString("none", null);
        StreamMessage stream = session.createStreamMessage();
        stream.writeString("first");
        stream.writeShort((short) -2);
        stream.writeLong(Long.MAX_VALUE);
        stream.writeFloat(1.5f);
        ObjectMessage object = session.createObjectMessage(new ArrayList<>(List.of("one", "two")));
        Message plain = session.createMessage();
        plain.setBooleanProperty("boolean", false);
        plain.setByteProperty("byte", Byte.MIN_VALUE);
        plain.setShortProperty("short", Short.MIN_VALUE);
        plain.setIntProperty("int", Integer.MIN_VALUE);
        plain.setLongProperty("long", Long.MIN_VALUE);
        plain.setFloatProperty("float", -0.5f);
        plain.setDoubleProperty("double", Double.MAX_VALUE);
        plain.setStringProperty("string", "ä€😀");
        plain.setStringProperty("none", null);
        TextMessage headers = session.createTextMessage("with headers");
        headers.setJMSCorrelationID("correlation");
        headers.setJMSType("type");
        headers.setJMSReplyTo(session.createQueue("answers"));
        headers.setStringProperty("JMSXGroupID", "group");
        headers.setIntProperty("JMSXGroupSeq", 7);
        return List.of(session.createTextMessage("text: ä€😀"), bytes, map, stream, object, plain, headers);
    }

    private static String described(Message message) throws JMSException {
        StringBuilder line = new StringBuilder();
        if (message instanceof TextMessage text) {
            line.append("text ").append(text.getText());
        } else if (message instanceof BytesMessage bytes) {
            byte[] content = new byte[(int) bytes.getBodyLength()];
            bytes.readBytes(content);
            line.append("bytes ").append(HexFormat.of().formatHex(content));
        } else if (message instanceof MapMessage map) {
            line.append("map");
            for (Object name : sorted(map.getMapNames())) {
                line.append(' ').append(name).append('=').append(typed(map.getObject((String) name)));
            }
        } else if (message instanceof StreamMessage stream) {
            line.append("stream");
            try {
                while (true) {
                    String value = typed(stream.readObject());
                    line.append(' ').append(value);
                }
            } catch (MessageEOFException end) {
                // All was read.
            }
        } else if (message instanceof ObjectMessage object) {
            line.append("object ").append(object.getObject());
        } else {
            line.append("message");
        }
        for (Object name : sorted(message.getPropertyNames())) {
            if (!name.equals("JMSXDeliveryCount")) {
                line.append(" | ").append(name).append('=').append(typed(message.getObjectProperty((String) name)));
            }
        }
        if (message.getJMSCorrelationID() != null) {
            line.append(" | ").append(message.getJMSCorrelationID()).append(' ').append(message.getJMSType());
            line.append(' ').append(message.getJMSReplyTo());
        }
        return line.toString();
    }

    private static List<Object> sorted(Enumeration<?> names) {
        List<Object> found = new ArrayList<>(Collections.list(names));
        found.sort(null);
        return found;
    }

    private static String typed(Object value) {
        if (value == null) {
            return "null";
        }
        String text = value instanceof byte[] bytes ? HexFormat.of().formatHex(bytes) : value.toString();
        return value.getClass().getSimpleName() + ":" + text;
    }

    /** QUEUE SIZE: a message of many frames, there and back. */
    private static void large(Main main, String url, String[] arguments) throws JMSException {
        byte[] content = new byte[Integer.parseInt(arguments[1])];
        for (int index = 0; index < content.length; index++) {
            content[index] = (byte) (index * 31);
        }
        try (Connection connection = connect(url); Session session = connection.createSession()) {
            Queue queue = session.createQueue(arguments[0]);
            BytesMessage message = session.createBytesMessage();
            message.writeBytes(content);
            session.createProducer(queue).send(message);
            Message received = session.createConsumer(queue).receive(PATIENCE);
            main.say(java.util.Arrays.equals(content, received.getBody(byte[].class)) ? "the same" : "another");
        }
    }
}
