const fs = require("fs");
const tell = (what, ms) => console.log(what, (ms / 1000).toFixed(3));
tell("now", Date.now());
tell("now", new Date().getTime());
const file = `${require("os").tmpdir()}/node-${process.pid}`;
fs.writeFileSync(file, "x");
tell("file", Math.floor(fs.statSync(file).mtimeMs));
fs.unlinkSync(file);
const began = process.hrtime.bigint();
setTimeout(() => {
  console.log("waited", (Number(process.hrtime.bigint() - began) / 1e9).toFixed(3), "0.200");
  tell("now", Date.now());
}, 200);
