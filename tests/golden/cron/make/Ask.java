import com.cronutils.model.CronType;
import com.cronutils.model.definition.CronDefinitionBuilder;
import com.cronutils.model.time.ExecutionTime;
import com.cronutils.parser.CronParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.text.ParseException;
import java.time.Instant;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.TimeZone;
import org.quartz.CronExpression;

/** What Quartz and cron-utils say: reads cases, writes answers. */
public class Ask {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] part = line.split("\t");
            Instant from = Instant.ofEpochMilli(Long.parseLong(part[4]));
            int count = Integer.parseInt(part[5]);
            if (part[1].equals("quartz")) {
                System.out.println(part[0] + "\tquartz\t" + quartz(part[2], part[3], from, count));
            }
            System.out.println(part[0] + "\tcron-utils\t" + cronUtils(part[1], part[2], part[3], from, count));
        }
    }

    static String quartz(String cron, String zone, Instant from, int count) {
        List<String> found = new ArrayList<>();
        try {
            CronExpression expression = new CronExpression(cron);
            expression.setTimeZone(TimeZone.getTimeZone(ZoneId.of(zone)));
            Date at = Date.from(from);
            while (found.size() < count && (at = expression.getNextValidTimeAfter(at)) != null) {
                found.add(Long.toString(at.getTime()));
            }
        } catch (ParseException error) {
            return "refused: " + error.getMessage();
        }
        return String.join(",", found);
    }

    static String cronUtils(String form, String cron, String zone, Instant from, int count) {
        CronType type = form.equals("unix") ? CronType.UNIX : CronType.QUARTZ;
        List<String> found = new ArrayList<>();
        try {
            var times = ExecutionTime.forCron(new CronParser(CronDefinitionBuilder.instanceDefinitionFor(type)).parse(cron).validate());
            ZonedDateTime at = from.atZone(ZoneId.of(zone));
            while (found.size() < count && (at = times.nextExecution(at).orElse(null)) != null) {
                found.add(Long.toString(at.toInstant().toEpochMilli()));
            }
        } catch (RuntimeException error) {
            return "refused: " + String.valueOf(error.getMessage()).split("\n")[0];
        }
        return String.join(",", found);
    }
}
