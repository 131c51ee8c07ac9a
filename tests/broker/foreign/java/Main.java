import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

/**
 * Uses of Java messaging that tests ask for: a line on standard input names one, with the URL of a broker and
 * arguments, separated by tabs. What it observes are lines on standard output; the last one is "== done" or
 * "== failed REASON".
 */
public final class Main {
    /** One use. */
    interface Use {
        void run(Main main, String url, String[] arguments) throws Exception;
    }

    private static final Map<String, Use> USES = new TreeMap<>();

    static {
        Messages.addTo(USES);
        Acknowledging.addTo(USES);
        Subscribing.addTo(USES);
        Connecting.addTo(USES);
    }

    private final BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    private final PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] arguments) throws IOException {
        new Main().run();
    }

    private void run() throws IOException {
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split("\t", -1);
            try {
                USES.get(words[0]).run(this, words[1], Arrays.copyOfRange(words, 2, words.length));
                say("== done");
            } catch (Exception error) {
                error.printStackTrace();
                say("== failed " + error.getClass().getSimpleName() + ": " + error.getMessage());
            }
        }
    }

    /** Report something. */
    synchronized void say(Object text) {
        output.println(text);
    }

    /** Wait until the test says that it goes on. */
    void pause(String why) throws IOException {
        say("== pause " + why);
        if (input.readLine() == null) {
            throw new IOException("the test has ended");
        }
    }

    /** The name of an exception of JMS, and what the broker said. */
    static String named(Exception error) {
        return error.getClass().getSimpleName() + ": " + error.getMessage();
    }
}
