"""Settings of Spark for tests."""

from __future__ import annotations

#: For many small queries: optimised code and parallel tasks are not worth their cost, nor is deleting what each left.
#: Spark's usual manager of checkpoints starts programs, `readlink` and `chmod`, for each file.
QUICK: dict[str, str] = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -Djdk.lang.Process.launchMechanism=VFORK",
    "spark.cleaner.referenceTracking": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing"
    ".FileSystemBasedCheckpointFileManager",
    "spark.log.level": "OFF",
}

#: Seconds that a query may take before a test gives up. Far above what is needed, for slow machines.
WAIT_LIMIT = 180
