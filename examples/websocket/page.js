// One topic of the broker's exchange `mqtt`, by three protocols. Each of them has a function that connects, and calls
// `panel` with what happens; it returns a function that sends a text, and one that ends the connection.
'use strict';

const EXCHANGE = 'mqtt'; // where publications of MQTT go; AMQP and STOMP name it

// A section of the page: its state, its button, what was received.
function panelOf(name) {
  const section = document.getElementById(name);
  const [state, button, list] = ['p', 'button', 'ol'].map((each) => section.querySelector(each));
  let count = 0;
  let over = false;
  return {
    connecting() {
      over = false;
      state.textContent = 'connecting';
      list.replaceChildren();
    },
    connected(send) {
      state.textContent = 'connected';
      button.disabled = false;
      button.onclick = () => send(`message ${++count} by ${name}`);
    },
    // The first reason counts: others follow from it.
    ended(reason) {
      if (over) return;
      over = true;
      state.textContent = reason;
      button.disabled = true;
    },
    received(text) {
      list.append(Object.assign(document.createElement('li'), { textContent: text }));
    },
  };
}

const describe = (error) => (error && (error.description || error.message || error.condition)) || String(error);

function amqp({ url, topic, user, password }, panel) {
  const container = rheaUmd.create_container();
  const open = container.websocket_connect(WebSocket);
  const login = user ? { username: user, password } : {};
  const connection = container.connect({ connection_details: open(url, ['amqp']), reconnect: false, ...login });
  // The key of the binding has MQTT's wildcards, since the exchange is MQTT's.
  const binding = rheaUmd.types.wrap_described(topic, 'apache.org:legacy-amqp-topic-binding:string');
  const receiver = connection.open_receiver({ source: { address: EXCHANGE, filter: { binding } } });
  const sender = connection.open_sender(EXCHANGE);
  const ready = new Set();
  const whenReady = (what) => {
    ready.add(what);
    if (ready.size === 2) panel.connected((body) => sender.send({ subject: topic, body }));
  };
  receiver.once('receiver_open', () => whenReady('receiver'));
  sender.once('sendable', () => whenReady('sender'));
  container.on('message', ({ message: { body } }) => {
    // Text comes as it is, bytes as one data section.
    panel.received(typeof body === 'string' ? body : new TextDecoder().decode(body.content));
  });
  container.on('connection_error', ({ error }) => panel.ended(describe(error)));
  container.on('receiver_error', (context) => panel.ended(describe(context.receiver.error)));
  container.on('sender_error', (context) => panel.ended(describe(context.sender.error)));
  container.on('disconnected', () => panel.ended('no connection'));
  container.on('connection_close', () => panel.ended('not connected'));
  return () => connection.close();
}

function mqttClient({ url, topic, user, password }, panel) {
  const login = user ? { username: user, password } : {};
  const client = mqtt.connect(url, { protocolVersion: 5, reconnectPeriod: 0, ...login });
  client.on('connect', () => {
    client.subscribe(topic, { qos: 1 }, (error) => {
      if (error) panel.ended(describe(error));
      else panel.connected((text) => client.publish(topic, text, { qos: 1 }));
    });
  });
  client.on('message', (_, payload) => panel.received(new TextDecoder().decode(payload)));
  client.on('disconnect', (packet) => panel.ended(packet.properties?.reasonString || `disconnected: ${packet.reasonCode}`));
  client.on('error', (error) => panel.ended(describe(error)));
  return () => client.end(false, {}, () => panel.ended('not connected'));
}

function stomp({ url, topic, user, password }, panel) {
  const destination = `/exchange/${EXCHANGE}/${topic}`;
  const client = new StompJs.Client({
    brokerURL: url,
    connectHeaders: user ? { login: user, passcode: password } : {},
    reconnectDelay: 0,
    onConnect() {
      client.subscribe(destination, (message) => panel.received(message.body), { receipt: 'subscribed' });
      client.watchForReceipt('subscribed', () => {
        panel.connected((body) => client.publish({ destination, body, headers: { 'content-type': 'text/plain' } }));
      });
    },
    onStompError: (frame) => panel.ended(frame.headers.message),
    onWebSocketError: () => panel.ended('no connection'),
    onDisconnect: () => panel.ended('not connected'),
  });
  client.activate();
  return () => client.deactivate();
}

let ends = [];

document.getElementById('settings').addEventListener('submit', (event) => {
  event.preventDefault();
  ends.forEach((end) => end());
  const settings = Object.fromEntries(new FormData(event.target));
  ends = Object.entries({ amqp, mqtt: mqttClient, stomp }).map(([name, connect]) => {
    const panel = panelOf(name);
    panel.connecting();
    return connect(settings, panel);
  });
});
