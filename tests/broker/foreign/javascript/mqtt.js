'use strict';
// Uses of npm's `mqtt` that tests ask for, as client.js has those of rhea.

const readline = require('readline');
const { once } = require('events');
const mqtt = require('mqtt');

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (text) => process.stdout.write(`${text}\n`);

async function nextLine() {
  const { value, done } = await lines.next();
  return done ? undefined : value;
}

/** A client that is connected; what it receives is in `next()`. */
async function connect(url, options) {
  const client = mqtt.connect(url, { reconnectPeriod: 0, connectTimeout: 20000, ...options });
  const waiting = [];
  const wanted = [];
  client.on('message', (topic, payload, packet) => {
    if (wanted.length) wanted.shift()(packet);
    else waiting.push(packet);
  });
  client.next = () => (waiting.length ? Promise.resolve(waiting.shift()) : new Promise((done) => wanted.push(done)));
  const failed = once(client, 'error').then(([error]) => { throw error; });
  failed.catch(() => {});
  const [connack] = await Promise.race([once(client, 'connect'), failed]);
  client.present = connack.sessionPresent;
  return client;
}

const uses = {
  // VERSION: messages of each QoS, with the properties that the version has; their order.
  async messages(url, version) {
    const protocolVersion = Number(version);
    const client = await connect(url, { protocolVersion, clientId: `js-${version}-${url.split(':')[0]}` });
    const granted = await client.subscribeAsync({ 'q/0': { qos: 0 }, 'q/1': { qos: 1 }, 'q/2': { qos: 2 } });
    say(`granted ${granted.map(({ qos }) => qos).join(' ')}`);
    const properties = { contentType: 'text/plain', correlationData: Buffer.from([0, 255]), responseTopic: 'answers',
      userProperties: { a: ['1', '2'] } };
    for (let number = 0; number < 9; number += 1) {
      const qos = number % 3;
      await client.publishAsync(`q/${qos}`, `${number}`, protocolVersion === 5 ? { qos, properties } : { qos });
    }
    const found = [];
    for (let number = 0; number < 9; number += 1) found.push(await client.next());
    for (let qos = 0; qos < 3; qos += 1) {
      say(found.filter((each) => each.topic === `q/${qos}`).map((each) => `${each.qos}:${each.payload}`).join(' '));
    }
    const kept = found[0].properties || {};
    say(`${kept.contentType} ${kept.responseTopic} ${JSON.stringify(kept.userProperties)}`);
    const large = Buffer.alloc(300000, 'x');
    await client.publishAsync('q/1', large, { qos: 1 });
    say(`large ${(await client.next()).payload.equals(large)}`);
    await client.endAsync();
  },

  // NAME: a session that is kept, a retained message, a will of a client that is cut
  async sessions(url, name) {
    const kept = { protocolVersion: 5, clientId: name, clean: false, properties: { sessionExpiryInterval: 1000 } };
    let client = await connect(url, kept);
    say(`present ${client.present}`);
    await client.subscribeAsync(`${name}/#`, { qos: 2 });
    await client.endAsync();
    const will = { topic: `${name}/will`, payload: 'lost', qos: 1, retain: true };
    const other = await connect(url, { protocolVersion: 5, clientId: `${name}-other`, will });
    await other.publishAsync(`${name}/1`, 'while away', { qos: 2 });
    other.stream.destroy();
    await once(other, 'close');
    client = await connect(url, kept);
    say(`present ${client.present}`);
    // What has QoS 2 is handed over when it is released, which may be behind others.
    const found = [await client.next(), await client.next()].map((packet) => `${packet.topic} ${packet.payload}`);
    found.sort().forEach(say);
    await client.subscribeAsync(`${name}/will`);
    say(`retained ${(await client.next()).retain}`);
    await client.endAsync();
  },

  // USER PASSWORD: whether the broker lets this user in
  async login(url, username, password) {
    try {
      const client = await connect(url, { protocolVersion: 5, username, password });
      say('connected');
      await client.endAsync();
    } catch (error) {
      say(`${error.code}`);
    }
  },
};

async function main() {
  for (let line = await nextLine(); line !== undefined; line = await nextLine()) {
    const [use, ...words] = line.split('\t');
    try {
      await uses[use](...words);
      say('== done');
    } catch (error) {
      process.stderr.write(`${error.stack}\n`);
      say(`== failed ${error.message}`);
    }
  }
  process.exit(0);
}

main();
