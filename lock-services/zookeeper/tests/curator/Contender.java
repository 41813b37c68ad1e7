import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/**
 * A contender for one lock in a process of its own: {@code Contender SERVERS PATH SESSION_MS}.
 *
 * <p>Each line of its input is a command, and each answer a line of JSON.
 */
public final class Contender {
    private static final int CONNECTION_MS = 60_000;

    public static void main(String[] arguments) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.builder()
                        .connectString(arguments[0])
                        .sessionTimeoutMs(Integer.parseInt(arguments[2]))
                        .connectionTimeoutMs(CONNECTION_MS)
                        .retryPolicy(new RetryOneTime(100))
                        .build();
        client.start();
        if (!client.blockUntilConnected(CONNECTION_MS, TimeUnit.MILLISECONDS)) {
            throw new IllegalStateException("no server");
        }
        InterProcessMutex lock = new InterProcessMutex(client, arguments[1]);
        say("ready", true);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] command = line.split(" ");
            switch (command[0]) {
                case "try" -> say("acquired", lock.acquire(0, TimeUnit.SECONDS));
                case "acquire" -> {
                    lock.acquire();
                    say("acquired", true);
                }
                case "release" -> {
                    lock.release();
                    say("released", true);
                }
                case "contenders" -> say("contenders", lock.getParticipantNodes().size());
                case "turns" -> turns(lock, Integer.parseInt(command[1]), Path.of(command[2]));
                default -> throw new IllegalArgumentException(line);
            }
        }
        client.close();
    }

    /** While it holds, there is a file that no other may have made. */
    private static void turns(InterProcessMutex lock, int turns, Path mark) throws Exception {
        for (int turn = 0; turn < turns; turn++) {
            lock.acquire();
            Files.createFile(mark);
            Thread.sleep(2);
            Files.delete(mark);
            lock.release();
        }
        say("turns", turns);
    }

    private static void say(String name, Object value) {
        System.out.println("{\"" + name + "\": " + value + "}");
    }

    private Contender() {}
}
