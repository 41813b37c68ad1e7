// node-redlock, measured as bench/src/bin/peer.rs says: peer.js LIBRARY LOAD TASKS MILLIS URL FILE
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

import { Redis } from 'ioredis';
import Redlock from 'redlock';

const [library, load, tasks, millis, url, file] = process.argv.slice(2);
const now = () => process.hrtime.bigint();

async function toldToGoOn() {
  console.log('ready');
  await once(createInterface({ input: process.stdin }), 'line');
}

const client = new Redis(url);
const Lock = Redlock.default ?? Redlock;
const locks = new Lock([client], { retryCount: 1e6, retryDelay: 2, retryJitter: 1 });
locks.on('error', () => {}); // somebody else holds it

if (load === 'pause') {
  await locks.acquire([`${library}:0`], Number(millis));
  await toldToGoOn();
  writeFileSync(file, String(process.pid));
  console.log('stored');
  process.exit(0); // a lease that ended cannot be released
}

await toldToGoOn();
const until = now() + BigInt(millis) * 1_000_000n;
const passes = [];
await Promise.all(
  Array.from({ length: Number(tasks) }, async (_, task) => {
    const name = `${library}:${load === 'contest' ? 0 : task}`;
    while (now() < until) {
      const before = now();
      const lock = await locks.acquire([name], 10_000);
      const granted = now();
      await lock.release();
      passes.push(load === 'contest' ? [task, granted, granted] : [task, before, now()]);
    }
  }),
);
console.log('done');
console.log(passes.map((pass) => pass.join(' ')).join('\n'));
client.disconnect();
process.stdin.destroy();
