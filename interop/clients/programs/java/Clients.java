// Clients for Java: `Clients CLIENT`. The same requests as javascript.mjs makes.
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.WebSocket;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import org.apache.hc.client5.http.classic.methods.HttpGet;
import org.apache.hc.client5.http.classic.methods.HttpPost;
import org.apache.hc.client5.http.classic.methods.HttpUriRequestBase;
import org.apache.hc.client5.http.impl.classic.CloseableHttpClient;
import org.apache.hc.client5.http.impl.classic.HttpClients;
import org.apache.hc.core5.http.io.entity.StringEntity;

public class Clients {
  static final String API = "https://api.test";
  static final String BODY = "x".repeat(1000);

  interface Opener {
    /** Without a body it is a GET. */
    InputStream open(String path, String body) throws Exception;
  }

  static String read(InputStream stream) throws Exception {
    try (stream) {
      return new String(stream.readAllBytes());
    }
  }

  static void check(boolean isRight, String what) {
    if (!isRight) throw new IllegalStateException(what);
  }

  static void tryAll(Opener opener) throws Exception {
    for (int i = 0; i < 3; i++) check(read(opener.open("/echo", null)).contains("\"method\":\"GET\""), "method");
    check(read(opener.open("/echo", BODY)).contains("\"bytes\":1000"), "body");
    long first = 0;
    long last = 0;
    byte[] buffer = new byte[4096];
    try (InputStream stream = opener.open("/stream", null)) {
      while (stream.read(buffer) > 0) {
        last = System.nanoTime();
        if (first == 0) first = last;
      }
    }
    System.out.println("spread " + (last - first) / 1_000_000);
  }

  static Opener httpClient() {
    HttpClient client = HttpClient.newHttpClient();
    return (path, body) -> {
      HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(API + path));
      if (body != null) request.POST(HttpRequest.BodyPublishers.ofString(body));
      return client.send(request.build(), HttpResponse.BodyHandlers.ofInputStream()).body();
    };
  }

  static Opener urlConnection() {
    return (path, body) -> {
      HttpURLConnection connection = (HttpURLConnection) new URL(API + path).openConnection();
      if (body != null) {
        connection.setDoOutput(true);
        connection.getOutputStream().write(body.getBytes());
      }
      return connection.getInputStream();
    };
  }

  static Opener okHttp() {
    OkHttpClient client = new OkHttpClient();
    return (path, body) -> {
      Request.Builder request = new Request.Builder().url(API + path);
      if (body != null) request.post(RequestBody.create(body.getBytes()));
      return client.newCall(request.build()).execute().body().byteStream();
    };
  }

  static Opener apache(CloseableHttpClient client) {
    return (path, body) -> {
      HttpUriRequestBase request = body == null ? new HttpGet(API + path) : new HttpPost(API + path);
      if (body != null) request.setEntity(new StringEntity(body));
      return client.executeOpen(null, request, null).getEntity().getContent();
    };
  }

  static void webSocket() throws Exception {
    CompletableFuture<String> echoed = new CompletableFuture<>();
    WebSocket.Listener listener = new WebSocket.Listener() {
      @Override
      public CompletionStage<?> onText(WebSocket socket, CharSequence text, boolean isLast) {
        echoed.complete(text.toString());
        return null;
      }
    };
    URI uri = URI.create("wss://ws.test/");
    WebSocket socket = HttpClient.newHttpClient().newWebSocketBuilder().buildAsync(uri, listener).join();
    socket.sendText("hello", true);
    check(echoed.get(10, TimeUnit.SECONDS).equals("hello"), "echo");
  }

  public static void main(String[] arguments) {
    try {
      switch (arguments[0]) {
        case "http-client" -> tryAll(httpClient());
        case "url-connection" -> tryAll(urlConnection());
        case "okhttp" -> tryAll(okHttp());
        case "apache" -> tryAll(apache(HttpClients.createDefault()));
        case "apache-system" -> tryAll(apache(HttpClients.createSystem()));
        case "web-socket" -> webSocket();
        default -> throw new IllegalArgumentException("there is no client " + arguments[0]);
      }
    } catch (Exception error) {
      for (Throwable cause = error; cause != null; cause = cause.getCause()) System.err.println(cause);
      System.exit(1);
    }
    System.exit(0);
  }
}
