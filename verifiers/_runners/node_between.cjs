// Before each test, lets node tell of what was before it: a test that never waits would let nobody.
// Workers and forked programs, which are started with the same options, are left alone.
const { beforeEach } = require('node:test');
const { isMainThread } = require('node:worker_threads');

if (isMainThread && !process.connected) {
  const later = setImmediate;
  beforeEach(() => new Promise((go) => later(go)));
}
