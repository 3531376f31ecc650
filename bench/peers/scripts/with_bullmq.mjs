// BullMQ on Redis, in its own folder: 500 at a time in each of two processes, removed when done.
import { asked, produce, require, Tally, URL } from "./side.mjs";

const { Queue, Worker } = require("bullmq");
const IORedis = require("ioredis");

const [verb, ...numbers] = process.argv.slice(2);
const connection = new IORedis(URL, { maxRetriesPerRequest: null });

if (verb === "work") {
  const tally = new Tally();
  const worker = new Worker("bench", async (job) => tally.started(job.data.sent), {
    connection,
    concurrency: 500,
    removeOnComplete: { count: 0 },
  });
  worker.on("error", (error) => console.error(error));
  await asked();
  await worker.close();
  tally.write();
} else if (verb !== "setup") {
  const queue = new Queue("bench", { connection, defaultJobOptions: { removeOnComplete: true, removeOnFail: true } });
  const one = (data) => queue.add("noop", data);
  const many = (all) => queue.addBulk(all.map((data) => ({ name: "noop", data })));
  await produce({ one, many }, [verb, ...numbers]);
  await queue.close();
}
connection.disconnect();
