import java.io.File;
import java.time.Instant;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

class Now {
    static void waited(long began) {
        System.out.printf("waited %.3f 0.200%n", (System.nanoTime() - began) / 1e9);
    }

    public static void main(String[] words) throws Exception {
        Instant now = Instant.now();
        System.out.printf("now %d.%09d%n", now.getEpochSecond(), now.getNano());
        long ms = System.currentTimeMillis();
        System.out.printf("now %d.%03d%n", ms / 1000, ms % 1000);
        long began = System.nanoTime();
        Thread.sleep(200);
        waited(began);
        began = System.nanoTime();
        synchronized (Now.class) {
            Now.class.wait(200);
        }
        waited(began);
        began = System.nanoTime();
        new CountDownLatch(1).await(200, TimeUnit.MILLISECONDS);
        waited(began);
        began = System.nanoTime();
        LockSupport.parkUntil(System.currentTimeMillis() + 200);
        waited(began);
        File file = File.createTempFile("zoo", null);
        System.out.printf("file %d.%03d%n", file.lastModified() / 1000, file.lastModified() % 1000);
        file.delete();
    }
}
