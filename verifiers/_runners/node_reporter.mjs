// A reporter of node's test runner: tells its events, a JSON object a line, on descriptor 3.
import { writeSync } from 'node:fs';

const WANTED = new Set(['test:dequeue', 'test:start', 'test:pass', 'test:fail']);

export default async function* tell(source) {
  for await (const { type, data } of source) {
    if (!WANTED.has(type)) continue;
    const { name, nesting, skip, todo, details = {} } = data;
    const { error = {} } = details;
    const why = error.failureType ?? '';
    const message = String(error.cause?.message ?? error.message ?? '').slice(0, 1000);
    const flags = { skip: skip !== undefined, todo: todo !== undefined };
    const seconds = (details.duration_ms ?? 0) / 1000;
    const record = { type, name, nesting, ...flags, why, message, seconds };
    writeSync(3, JSON.stringify(record) + '\n');
  }
}
