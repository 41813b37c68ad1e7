import java.io.*;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.redisson.Redisson;
import org.redisson.config.Config;

/** Libraries in Java, measured as bench/src/bin/peer.rs says: Peer LIBRARY LOAD TASKS MILLIS URL FILE */
public class Peer {
  record Pass(int task, long begin, long end) {}

  interface Release { void now() throws Exception; }

  /** Acquires a lock with a lease that lasts so many milliseconds. */
  interface Locks { Release acquire(int task, String name, long ttl) throws Exception; }

  static Locks connect(String library, String url, int tasks, int ttl) {
    if (library.equals("curator")) {
      var client = CuratorFrameworkFactory.newClient(
          url.replace("zookeeper://", ""), ttl, 10_000, new ExponentialBackoffRetry(100, 3));
      client.start();
      var mutexes = new ConcurrentHashMap<String, InterProcessMutex>();
      return (task, name, millis) -> {
        var path = "/" + name.replace(':', '-');
        var mutex = mutexes.computeIfAbsent(task + path, key -> new InterProcessMutex(client, path));
        mutex.acquire();
        return mutex::release;
      };
    }
    var config = new Config();
    config.useSingleServer().setAddress(url).setConnectionPoolSize(Math.max(24, tasks));
    var client = Redisson.create(config);
    return (task, name, millis) -> {
      var lock = switch (library) {
        case "redisson-fair" -> client.getFairLock(name);
        case "redisson-fenced" -> client.getFencedLock(name);
        default -> client.getLock(name);
      };
      lock.lock(millis, TimeUnit.MILLISECONDS);
      return lock::unlock;
    };
  }

  static void toldToGoOn() throws IOException {
    System.out.println("ready");
    new BufferedReader(new InputStreamReader(System.in)).readLine();
  }

  static List<Pass> drive(Locks locks, String prefix, boolean contest, int tasks, long millis) throws Exception {
    long until = System.nanoTime() + millis * 1_000_000;
    var pool = Executors.newFixedThreadPool(tasks);
    var running = new ArrayList<Future<List<Pass>>>();
    for (int i = 0; i < tasks; i++) {
      int task = i;
      running.add(pool.submit(() -> {
        var passes = new ArrayList<Pass>();
        while (System.nanoTime() < until) {
          long before = System.nanoTime();
          var release = locks.acquire(task, prefix + ":" + (contest ? 0 : task), 10_000);
          long granted = System.nanoTime();
          release.now();
          passes.add(contest ? new Pass(task, granted, granted) : new Pass(task, before, System.nanoTime()));
        }
        return passes;
      }));
    }
    var all = new ArrayList<Pass>();
    for (var done : running) all.addAll(done.get());
    pool.shutdown();
    return all;
  }

  public static void main(String[] arguments) throws Exception {
    String library = arguments[0], load = arguments[1], url = arguments[4], file = arguments[5];
    int tasks = Integer.parseInt(arguments[2]), millis = Integer.parseInt(arguments[3]);
    if (load.equals("pause")) {
      connect(library, url, 1, millis).acquire(0, library + ":0", millis);
      toldToGoOn();
      Files.writeString(Path.of(file), String.valueOf(ProcessHandle.current().pid()));
      System.out.println("stored");
      Runtime.getRuntime().halt(0); // a lease that ended cannot be released
    }
    var locks = connect(library, url, tasks, 10_000);
    boolean contest = load.equals("contest");
    drive(locks, library, contest, tasks, 4_000); // the compiler of the virtual machine warms up
    toldToGoOn();
    var passes = drive(locks, library, contest, tasks, millis);
    System.out.println("done");
    var out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16));
    for (var pass : passes) out.println(pass.task() + " " + pass.begin() + " " + pass.end());
    out.flush();
    Runtime.getRuntime().halt(0);
  }
}
