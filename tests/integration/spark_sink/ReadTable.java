import org.apache.spark.sql.SparkSession;

/** Prints the rows of queries as JSON lines, read by Spark with the runtimes of Iceberg and Delta. */
public final class ReadTable {
    public static void main(String[] arguments) {
        String catalog = "spark.sql.catalog." + arguments[0];
        SparkSession spark = SparkSession.builder()
                .master("local[1]")
                .config("spark.ui.enabled", "false")
                .config("spark.sql.session.timeZone", "UTC")
                .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
                .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
                .config(catalog, "org.apache.iceberg.spark.SparkCatalog")
                .config(catalog + ".type", "jdbc")
                .config(catalog + ".uri", arguments[1])
                .config(catalog + ".warehouse", arguments[2])
                .getOrCreate();
        for (int number = 3; number < arguments.length; number++) {
            for (Object row : spark.sql(arguments[number]).toJSON().collectAsList()) {
                System.out.println(row);
            }
        }
        spark.stop();
    }
}
