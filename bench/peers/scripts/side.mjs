// What the scripts of the Node peers share: the counterpart of side.py, with the same verbs and the same tallies.
import { appendFileSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

export const URL = process.env.PEER_URL;
const TALLIES = process.env.PEER_TALLIES ?? ".";

// The packages lie in the peer's own folder, not beside this script.
export const require = createRequire(join(process.env.PEER_HOME, "from-here.js"));

const now = () => (performance.timeOrigin + performance.now()) / 1000;
const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

export const payload = (sent = 0) => ({ user: 123, template: "welcome", note: "y".repeat(45), sent });

// Counts handler starts and writes them down ten times a second.
export class Tally {
  count = 0;
  first = 0;
  last = 0;
  waits = [];
  written = 0;

  started(sent) {
    this.last = now();
    if (this.count++ === 0) {
      this.first = this.last;
      setInterval(() => this.write(), 100).unref();
    }
    if (sent) this.waits.push([sent, this.last]);
  }

  write() {
    if (this.count === this.written) return;
    const { count, first, last, waits } = this;
    appendFileSync(join(TALLIES, `${process.pid}.jsonl`), JSON.stringify({ at: now(), count, first, last, waits }) + "\n");
    this.written = count;
    this.waits = [];
  }
}

function countStarted() {
  let count = 0;
  for (const name of existsSync(TALLIES) ? readdirSync(TALLIES) : []) {
    if (!name.endsWith(".jsonl")) continue;
    const lines = readFileSync(join(TALLIES, name), "utf8").split("\n");
    if (lines.length > 1) count += JSON.parse(lines[lines.length - 2]).count;
  }
  return count;
}

// `one` adds a single run, `many` a whole chunk in one call.
export async function produce({ one, many, chunk = 1000 }, [verb, ...numbers]) {
  const makes = { bulk, single, sustain, trickle }[verb];
  if (!makes) throw new Error(`no such verb: ${verb}`);
  const batch = (size) => Array.from({ length: size }, () => payload());

  async function bulk(count) {
    const began = now();
    for (let first = 0; first < count; first += chunk) await many(batch(Math.min(chunk, count - first)));
    return { made: count, seconds: now() - began };
  }

  async function single(seconds) {
    const began = now();
    let made = 0;
    for (; now() - began < seconds; made++) await one(payload());
    return { made, seconds: now() - began };
  }

  async function sustain(seconds, mostWaiting) {
    const before = countStarted();
    const began = now();
    let [made, looked, full] = [0, 0, false];
    while (now() < began + seconds) {
      if (now() - looked > 0.05) {
        full = made - (countStarted() - before) > mostWaiting - chunk;
        looked = now();
      }
      if (full) {
        await sleep(0.01);
        continue;
      }
      await many(batch(chunk));
      made += chunk;
    }
    return { made, began, ended: now() };
  }

  async function trickle(seconds, rate) {
    const began = now();
    let made = 0;
    while (now() - began < seconds) {
      const early = made / rate - (now() - began);
      if (early > 0) await sleep(early);
      await one(payload(now()));
      made++;
    }
    return { made };
  }

  console.log(JSON.stringify(await makes(...numbers.map(Number))));
}

// Resolves when the parent asks this process to end.
export const asked = () => new Promise((done) => ["SIGTERM", "SIGINT"].forEach((each) => process.once(each, done)));
