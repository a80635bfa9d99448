import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryForever;

/**
 * Holds a lock by one of Curator's recipes, as its parent tells it to.
 *
 * <p>Arguments: servers, path, kind (mutex, read, write), session timeout in milliseconds.
 * Commands on standard input, one a line: "lock", "try SECONDS", "release".
 * Answers on standard output: "ready" once connected, then "held", "busy",
 * "released" or "error ..." to each command. The end of the input ends it.
 */
public class Hold {
    public static void main(String[] args) throws Exception {
        CuratorFramework client =
                CuratorFrameworkFactory.builder()
                        .connectString(args[0])
                        .sessionTimeoutMs(Integer.parseInt(args[3]))
                        .connectionTimeoutMs(Integer.parseInt(args[3]))
                        .retryPolicy(new RetryForever(100))
                        .build();
        client.start();
        if (!client.blockUntilConnected(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + args[0]);
        }
        InterProcessLock lock = lockOf(client, args[1], args[2]);
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            System.out.println(obey(lock, line.trim().split(" ")));
        }
        client.close();
    }

    static InterProcessLock lockOf(CuratorFramework client, String path, String kind) {
        switch (kind) {
            case "mutex":
                return new InterProcessMutex(client, path);
            case "read":
                return new InterProcessReadWriteLock(client, path).readLock();
            case "write":
                return new InterProcessReadWriteLock(client, path).writeLock();
            default:
                throw new IllegalArgumentException("no such lock: " + kind);
        }
    }

    static String obey(InterProcessLock lock, String[] words) {
        try {
            switch (words[0]) {
                case "lock":
                    lock.acquire();
                    return "held";
                case "try":
                    long millis = (long) (1000 * Double.parseDouble(words[1]));
                    return lock.acquire(millis, TimeUnit.MILLISECONDS) ? "held" : "busy";
                case "release":
                    lock.release();
                    return "released";
                default:
                    return "error unknown command " + words[0];
            }
        } catch (Exception e) {
            return "error " + e;
        }
    }
}
