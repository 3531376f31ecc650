// Graphile Worker, in its own folder: 24 at a time, a local queue of 500, completions and failures in batches.
import { asked, produce, require, Tally, URL } from "./side.mjs";

const { makeWorkerUtils, run } = require("graphile-worker");
const { Pool } = require("pg");

const BATCHING = process.env.PEER_BATCHING !== "off";
const [verb, ...numbers] = process.argv.slice(2);

if (verb === "setup") {
  const utils = await makeWorkerUtils({ connectionString: URL });
  await utils.migrate();
  await utils.release();
} else if (verb === "work") {
  const tally = new Tally();
  const batching = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
  const runner = await run({
    preset: {
      worker: { connectionString: URL, concurrentJobs: 24, maxPoolSize: 25, ...(BATCHING ? batching : {}) },
    },
    noHandleSignals: true,
    logger: new (require("graphile-worker").Logger)(() => () => {}),
    taskList: { noop: async (payload) => tally.started(payload.sent) },
  });
  await asked();
  await runner.stop();
  tally.write();
  process.exit(0);
} else {
  const pool = new Pool({ connectionString: URL, max: 1 });
  const utils = await makeWorkerUtils({ pgPool: pool });
  const one = (payload) => utils.addJob("noop", payload);
  const many = (payloads) => utils.addJobs(payloads.map((payload) => ({ identifier: "noop", payload })));
  await produce({ one, many }, [verb, ...numbers]);
  await utils.release();
  await pool.end();
}
