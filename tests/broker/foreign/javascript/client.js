'use strict';
// Uses of rhea that tests ask for: a line on standard input names one, with the URL of a broker and arguments,
// separated by tabs. What it observes are lines on standard output; the last one is "== done" or "== failed REASON".

const fs = require('fs');
const readline = require('readline');
const { once } = require('events');
const rhea = require('rhea');
const WebSocket = require('ws');

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (text) => process.stdout.write(`${text}\n`);
const shown = (value) => JSON.stringify(value);

async function nextLine() {
  const { value, done } = await lines.next();
  return done ? undefined : value;
}

async function pause(why) {
  say(`== pause ${why}`);
  if ((await nextLine()) === undefined) throw new Error('the test has ended');
}

function container(id) {
  const made = rhea.create_container(id ? { id } : {});
  // Errors are awaited where they are expected; without a listener rhea would throw them.
  made.on('error', () => {});
  return made;
}

/** A connection that is open; it is not made again unless options say so. */
async function connect(url, options = {}, id = undefined) {
  const made = container(id);
  const { hostname: host, port, protocol } = new URL(url);
  if (protocol.startsWith('ws')) {
    const connection_details = made.websocket_connect(WebSocket)(url, ['amqp'], {});
    options = { connection_details, ...options };
  }
  const connection = made.connect({ host, port, reconnect: false, ...options });
  await awaited(connection, 'connection_open', ['connection_error', 'disconnected']);
  return connection;
}

/** Wait for an event of an endpoint; one of `errors` in its place is thrown. */
async function awaited(emitter, event, errors = []) {
  const ending = new AbortController();
  const failures = errors.map(async (name) => {
    const [context] = await once(emitter, name, { signal: ending.signal });
    const error = (context.sender || context.receiver || context.connection || {}).error || context.error;
    if (error && !error.condition) throw error; // one of the socket
    throw new Error(error ? `${error.condition}: ${error.description}` : name);
  });
  failures.forEach((failure) => failure.catch(() => {}));
  try {
    const [context] = await Promise.race([once(emitter, event, { signal: ending.signal }), ...failures]);
    return context;
  } finally {
    ending.abort();
  }
}

async function close(endpoint) {
  const closed = once(endpoint, endpoint.is_receiver && endpoint.is_receiver() ? 'receiver_close'
    : endpoint.is_sender && endpoint.is_sender() ? 'sender_close' : 'connection_close');
  endpoint.close();
  await closed;
}

/** Wait until a link is granted. One that is refused is attached first, without the node; then it is closed. */
async function granted(link, event, node) {
  const failed = once(link, `${event}_error`).then(() => {
    throw new Error(`${link.error.condition}: ${link.error.description}`);
  });
  failed.catch(() => {});
  await Promise.race([once(link, `${event}_open`), failed]);
  if (shown(link.remote.attach[node]) === 'null') await failed;
}

async function openSender(connection, options) {
  const sender = connection.open_sender(options);
  await granted(sender, 'sender', 'target');
  return sender;
}

/** A receiver, and a function for its next message: [message, delivery]. */
async function openReceiver(connection, options) {
  const waiting = [];
  const wanted = [];
  const receiver = connection.open_receiver({ autoaccept: false, credit_window: 0, ...options });
  receiver.on('message', ({ message, delivery }) => {
    if (wanted.length) wanted.shift()([message, delivery]);
    else waiting.push([message, delivery]);
  });
  await granted(receiver, 'receiver', 'source');
  receiver.next = () => (waiting.length ? Promise.resolve(waiting.shift()) : new Promise((done) => wanted.push(done)));
  receiver.waiting = waiting;
  return receiver;
}

/** Send messages, and wait for the outcome of each: "accepted", or the condition of a rejected one. */
async function send(sender, messages) {
  const outcomes = [];
  for (const message of messages) {
    while (!sender.sendable()) await once(sender, 'sendable');
    const delivery = sender.send(message);
    const names = ['accepted', 'released', 'modified', 'rejected'];
    const ending = new AbortController();
    const seen = names.map((name) => once(sender, name, { signal: ending.signal }).then(() => name));
    seen.forEach((one) => one.catch(() => {}));
    const name = await Promise.race(seen);
    ending.abort();
    const state = delivery.remote_state;
    outcomes.push(name === 'rejected' && state.error ? `${state.error.condition}: ${state.error.description}` : name);
  }
  return outcomes;
}

/** The bodies of all messages that are there: the credit is used up, or returned. */
async function rest(receiver) {
  const bodies = [];
  const drained = once(receiver, 'receiver_drained');
  receiver.drain = true;
  receiver.add_credit(1000);
  await drained;
  while (receiver.waiting.length) {
    const [message, delivery] = receiver.waiting.shift();
    delivery.accept();
    bodies.push(message.body);
  }
  receiver.drain = false;
  return bodies;
}

const selecting = (address, selector) => ({ address, filter: selector ? rhea.filter.selector(selector) : undefined });

const uses = {
  // ADDRESS MESSAGE...: messages in JSON, with the names of rhea.
  async send(url, address, ...messages) {
    const connection = await connect(url);
    const sender = await openSender(connection, { target: address });
    say((await send(sender, messages.map((text) => JSON.parse(text)))).join(' '));
    await close(connection);
  },

  // ADDRESS [SELECTOR]: the bodies of what is there.
  async receive(url, address, selector) {
    const connection = await connect(url);
    const receiver = await openReceiver(connection, { source: selecting(address, selector) });
    say(shown(await rest(receiver)));
    await close(connection);
  },

  // ADDRESS [SELECTOR]: the bodies of what is there, and stays.
  async browse(url, address, selector) {
    const connection = await connect(url);
    const source = { ...selecting(address, selector), distribution_mode: 'copy' };
    const receiver = await openReceiver(connection, { source });
    say(shown(await rest(receiver)));
    await close(connection);
  },

  // QUEUE: bodies, sections and types as they were sent.
  async types(url, queue) {
    const { types } = rhea;
    const connection = await connect(url);
    const sender = await openSender(connection, { target: queue });
    const bodies = [
      'ä€😀', true, null, 1.5, rhea.types.wrap_int(-5), rhea.types.wrap_ulong(5), ['a', 1], { a: { b: [true] } },
      rhea.message.data_section(Buffer.from([0, 255])),
      rhea.message.sequence_section([1, 'two']),
    ];
    await send(sender, bodies.map((body) => ({ body })));
    const all = {
      durable: true, priority: 7, ttl: 3600000,
      message_id: 'message', correlation_id: types.wrap_ulong(9), user_id: Buffer.from('guest'), to: queue,
      subject: 'subject', reply_to: 'answers', content_type: 'text/plain', content_encoding: 'utf-8',
      group_id: 'group', group_sequence: 3, reply_to_group_id: 'other',
      message_annotations: { 'x-opt-of-mine': types.wrap_symbol('symbol'), 'x-opt-list': [1, [2, 'three']] },
      application_properties: {
        byte: types.wrap_byte(-1), ushort: types.wrap_ushort(65535), long: types.wrap_long(-9),
        float: types.wrap_float(0.5),
        uuid: types.wrap_uuid(Buffer.from('00112233445566778899aabbccddeeff', 'hex')), flag: false, none: null,
        time: types.wrap_timestamp(1700000000000),
      },
      body: 'all sections',
    };
    say((await send(sender, [all])).join(' '));
    const receiver = await openReceiver(connection, { source: queue });
    receiver.add_credit(bodies.length + 1);
    for (let count = 0; count < bodies.length; count += 1) {
      const [{ body }, delivery] = await receiver.next();
      say(shown(body));
      delivery.accept();
    }
    const [message, delivery] = await receiver.next();
    delivery.accept();
    for (const name of Object.keys(all).filter((key) => key !== 'ttl').sort()) {
      const value = message[name];
      say(`${name} ${shown(Buffer.isBuffer(value) ? value.toString() : value)}`);
    }
    await close(connection);
  },

  // QUEUE SIZE FRAME: a message of many small frames, there and back.
  async large(url, queue, size, frame) {
    const connection = await connect(url, { max_frame_size: Number(frame) });
    const sender = await openSender(connection, { target: queue });
    const body = Buffer.alloc(Number(size), (_, index) => index % 251).fill('0123456789');
    say((await send(sender, [{ body }])).join(' '));
    const receiver = await openReceiver(connection, { source: queue });
    receiver.add_credit(1);
    const [message, delivery] = await receiver.next();
    delivery.accept();
    say(body.equals(message.body) ? 'the same' : 'another');
    await close(connection);
  },

  // QUEUE FORMAT SIZE: bytes that are no AMQP message, sent with a message format between two usual messages.
  async format(url, queue, format, size) {
    const connection = await connect(url, { max_frame_size: 1024 });
    const sender = await openSender(connection, { target: queue });
    const payload = Buffer.alloc(Number(size)).fill('\u00ff no sections ');
    await send(sender, [{ body: 'before' }]);
    while (!sender.sendable()) await once(sender, 'sendable');
    sender.send(payload, undefined, Number(format));
    await once(sender, 'accepted');
    await send(sender, [{ body: 'after' }]);
    const receiver = await openReceiver(connection, { source: queue });
    receiver.add_credit(3);
    for (let count = 0; count < 3; count += 1) {
      const [message, delivery] = await receiver.next();
      delivery.accept();
      const body = delivery.format ? (payload.equals(message) ? 'the same' : 'another') : message.body;
      say(`${delivery.format} ${body}`);
    }
    await close(connection);
  },

  // QUEUE: what becomes of a message by its outcome.
  async outcomes(url, queue) {
    const connection = await connect(url);
    const sender = await openSender(connection, { target: queue });
    await send(sender, [{ body: 'one' }]);
    const receiver = await openReceiver(connection, { source: queue });
    const next = async () => {
      receiver.add_credit(1);
      const [message, delivery] = await receiver.next();
      say(`${message.body} ${message.delivery_count || 0}`);
      return delivery;
    };
    (await next()).release();
    (await next()).modified({ delivery_failed: true });
    (await next()).modified({ delivery_failed: true, undeliverable_here: true });
    say(`here ${shown(await rest(receiver))}`);
    await close(receiver);
    const other = await openReceiver(connection, { source: queue });
    other.add_credit(1);
    const [message, delivery] = await other.next();
    say(`${message.body} ${message.delivery_count || 0}`);
    delivery.reject({ condition: 'test:not-wanted', description: 'as the test wants it' });
    say(`rejected ${shown(await rest(other))}`);
    await close(connection);
  },

  // QUEUE: settled by the sender, at once by the receiver, and by the receiver after the sender.
  async settling(url, queue) {
    const connection = await connect(url);
    const settled = await openSender(connection, { target: queue, snd_settle_mode: 1 });
    while (!settled.sendable()) await once(settled, 'sendable');
    say(`sent settled: ${settled.send({ body: 'settled' }).settled}`);
    const sender = await openSender(connection, { target: queue });
    say((await send(sender, [{ body: 'first' }, { body: 'second' }])).join(' '));
    const first = await openReceiver(connection, { source: queue, snd_settle_mode: 1 });
    first.add_credit(2);
    for (let count = 0; count < 2; count += 1) {
      const [message, delivery] = await first.next();
      say(`received ${message.body}, settled: ${delivery.remote_settled}`);
    }
    await close(first);
    const second = await openReceiver(connection, { source: queue, rcv_settle_mode: 1 });
    second.add_credit(1);
    const [message, delivery] = await second.next();
    const confirmed = once(second, 'settled');
    delivery.update(false, rhea.message.accepted().described());
    await confirmed;
    say(`${message.body} was settled by the broker`);
    delivery.update(true);
    await close(second);
    const last = await openReceiver(connection, { source: queue });
    say(shown(await rest(last)));
    await close(connection);
  },

  // QUEUE: no more messages than there is credit.
  async credit(url, queue) {
    const connection = await connect(url);
    const sender = await openSender(connection, { target: queue });
    await send(sender, [1, 2, 3, 4, 5].map((body) => ({ body })));
    const receiver = await openReceiver(connection, { source: queue });
    receiver.add_credit(2);
    const bodies = [];
    for (let count = 0; count < 2; count += 1) {
      const [message, delivery] = await receiver.next();
      delivery.accept();
      bodies.push(message.body);
    }
    say(shown(bodies));
    say(shown(await rest(receiver)));
    say(shown(await rest(receiver)));
    await close(connection);
  },

  // QUEUE: a request on one connection, answered to a dynamic node; both send to the anonymous relay.
  async request(url, queue) {
    const [client, server] = [await connect(url), await connect(url)];
    const requests = await openReceiver(server, { source: queue });
    const answers = await openReceiver(client, { source: { dynamic: true } });
    requests.add_credit(1);
    answers.add_credit(1);
    const asking = await openSender(client, { target: {} });
    await send(asking, [{ to: queue, reply_to: answers.source.address, correlation_id: 'c', body: 'question' }]);
    const [request, delivery] = await requests.next();
    delivery.accept();
    const answering = await openSender(server, { target: {} });
    const body = `answer to ${request.body}`;
    await send(answering, [{ to: request.reply_to, correlation_id: request.correlation_id, body }]);
    const [answer, answered] = await answers.next();
    answered.accept();
    say(`${answer.body} ${answer.correlation_id}`);
    await close(client);
    await close(server);
  },

  // EXCHANGE CLIENT NAME keep|end: what a durable subscription has; it is kept by detaching, ended by closing.
  async subscription(url, exchange, client, name, end) {
    const connection = await connect(url, {}, client);
    const source = { address: exchange, durable: 2, expiry_policy: 'never' };
    const receiver = await openReceiver(connection, { name, source });
    say(shown(await rest(receiver)));
    const detached = once(receiver, end === 'keep' ? 'receiver_detached' : 'receiver_close');
    if (end === 'keep') receiver.detach();
    else receiver.close();
    if (end !== 'keep') await detached;
    await close(connection);
  },

  // EXCHANGE KEY: messages of an exchange by a legacy binding.
  async binding(url, exchange, key) {
    const connection = await connect(url);
    const filter = { binding: rhea.types.wrap_described(key, 'apache.org:legacy-amqp-topic-binding:string') };
    const receiver = await openReceiver(connection, { source: { address: exchange, filter } });
    const sender = await openSender(connection, { target: exchange });
    await send(sender, ['a.b', 'b', 'a.c'].map((subject) => ({ subject, body: subject })));
    say(shown(await rest(receiver)));
    await close(connection);
  },

  // ADDRESS: the reasons why links are refused; the connection stays of use.
  async refused(url, address) {
    const connection = await connect(url);
    for (const open of [openSender, openReceiver]) {
      const options = open === openSender ? { target: address } : { source: address };
      await open(connection, options).then(() => say('granted'), (error) => say(error.message));
    }
    await openReceiver(connection, { source: { dynamic: true } });
    say('granted');
    await close(connection);
  },

  // USER PASSWORD: whether the broker lets this user in.
  async login(url, username, password) {
    try {
      const connection = await connect(url, { username, password });
      say('connected');
      await close(connection);
    } catch (error) {
      say(error.message);
    }
  },

  // ADDRESS AUTHORITY [CERTIFICATE]: a client that proves who it is by a certificate, or with none cannot, sends.
  async certified(url, address, authority, certificate) {
    const own = certificate ? { key: fs.readFileSync(certificate), cert: fs.readFileSync(certificate) } : {};
    const tls = { transport: 'tls', ca: fs.readFileSync(authority), rejectUnauthorized: true, ...own };
    try {
      const connection = await connect(url, { ...tls, enable_sasl_external: true });
      const sender = await openSender(connection, { target: address });
      say((await send(sender, [{ body: 'x' }])).join(' '));
      await close(connection);
    } catch (error) {
      say(error.message);
    }
  },

  // QUEUE: a connection that is cut is made again, with its links; what was not accepted comes again.
  async reconnect(url, queue) {
    const connection = await connect(url, { reconnect: true, initial_reconnect_delay: 10, max_reconnect_delay: 50 });
    const sender = await openSender(connection, { target: queue });
    const receiver = await openReceiver(connection, { source: queue });
    await send(sender, [{ body: 1 }, { body: 2 }]);
    receiver.add_credit(1);
    say(`held ${(await receiver.next())[0].body}`);
    const again = [once(connection, 'connection_open'), once(sender, 'sendable'), once(receiver, 'receiver_open')];
    await pause('cut');
    await Promise.all(again);
    await send(sender, [{ body: 3 }]);
    say(shown(await rest(receiver)));
    await close(connection);
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
