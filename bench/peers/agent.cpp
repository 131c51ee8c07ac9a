// A libqmf2 agent with the objects, the event and the method that the benchmarks use.
//
//     agent URL amqp0-10|amqp1.0 INSTANCE OBJECTS
//
// Says "ready", then does what lines on standard input say: "events COUNT" raises events and says "done". Ends with its
// input.

#include <qmf/AgentEvent.h>
#include <qmf/AgentSession.h>
#include <qmf/Data.h>
#include <qmf/DataAddr.h>
#include <qmf/Schema.h>
#include <qmf/SchemaMethod.h>
#include <qmf/SchemaProperty.h>
#include <qmf/SchemaTypes.h>
#include <qpid/messaging/Connection.h>
#include <qpid/messaging/Duration.h>
#include <qpid/types/Exception.h>
#include <qpid/types/Variant.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

using qpid::types::Variant;

namespace {

const char* const PACKAGE = "org.apache.qpid.broker";

const char* const WIDE[] = {
    "msgTotalEnqueues", "msgTotalDequeues", "msgTxnEnqueues", "msgTxnDequeues", "msgPersistEnqueues",
    "msgPersistDequeues", "msgDepth", "byteDepth", "byteTotalEnqueues", "byteTotalDequeues", "byteTxnEnqueues",
    "byteTxnDequeues", "bytePersistEnqueues", "bytePersistDequeues", "msgFtdEnqueues", "msgFtdDequeues",
    "byteFtdEnqueues", "byteFtdDequeues", "msgFtdDepth", "byteFtdDepth", "releases", "acquires", "discardsTtl",
    "discardsRing", "discardsLvq", "discardsOverflow", "discardsSubscriber", "discardsPurge", "reroutes",
    "messageLatencyCount", "messageLatencyMin", "messageLatencyMax", "messageLatencyAvg"};
const char* const NARROW[] = {
    "consumerCount", "consumerCountHigh", "consumerCountLow", "bindingCount", "bindingCountHigh", "bindingCountLow",
    "unackedMessages", "unackedMessagesHigh", "unackedMessagesLow", "flowStoppedCount"};
const char* const FLAGS[] = {"durable", "autoDelete", "exclusive", "flowStopped", "redirectSource"};
const char* const TEXTS[] = {"name", "redirectPeer", "creator"};
const char* const REFERENCES[] = {"vhostRef", "altExchange"};

qmf::Schema queueSchema() {
    qmf::Schema schema(qmf::SCHEMA_TYPE_DATA, PACKAGE, "queue");
    for (const char* name : TEXTS) schema.addProperty(qmf::SchemaProperty(name, qmf::SCHEMA_DATA_STRING));
    for (const char* name : REFERENCES) schema.addProperty(qmf::SchemaProperty(name, qmf::SCHEMA_DATA_MAP));
    schema.addProperty(qmf::SchemaProperty("arguments", qmf::SCHEMA_DATA_MAP));
    for (const char* name : FLAGS) schema.addProperty(qmf::SchemaProperty(name, qmf::SCHEMA_DATA_BOOL));
    for (const char* name : WIDE) schema.addProperty(qmf::SchemaProperty(name, qmf::SCHEMA_DATA_INT));
    for (const char* name : NARROW) schema.addProperty(qmf::SchemaProperty(name, qmf::SCHEMA_DATA_INT));
    return schema;
}

qmf::Schema brokerSchema() {
    qmf::Schema schema(qmf::SCHEMA_TYPE_DATA, PACKAGE, "broker");
    schema.addProperty(qmf::SchemaProperty("name", qmf::SCHEMA_DATA_STRING));
    qmf::SchemaMethod echo("echo");
    echo.addArgument(qmf::SchemaProperty("sequence", qmf::SCHEMA_DATA_INT, "{dir:INOUT}"));
    echo.addArgument(qmf::SchemaProperty("body", qmf::SCHEMA_DATA_STRING, "{dir:INOUT}"));
    schema.addMethod(echo);
    return schema;
}

qmf::Schema eventSchema() {
    qmf::Schema schema(qmf::SCHEMA_TYPE_EVENT, PACKAGE, "subscribe");
    for (const char* name : {"rhost", "user", "qName", "dest"})
        schema.addProperty(qmf::SchemaProperty(name, qmf::SCHEMA_DATA_STRING));
    schema.addProperty(qmf::SchemaProperty("excl", qmf::SCHEMA_DATA_BOOL));
    schema.addProperty(qmf::SchemaProperty("args", qmf::SCHEMA_DATA_MAP));
    return schema;
}

qmf::Data queue(const qmf::Schema& schema, uint64_t number) {
    std::ostringstream name;
    name << "queue-" << number;
    qmf::Data data(schema);
    Variant::Map reference;
    reference["_object_name"] = "org.apache.qpid.broker:vhost:amqp-broker,/";
    for (const char* item : TEXTS) data.setProperty(item, std::string());
    data.setProperty("name", name.str());
    for (const char* item : REFERENCES) data.setProperty(item, reference);
    data.setProperty("arguments", Variant::Map());
    for (const char* item : FLAGS) data.setProperty(item, false);
    for (const char* item : WIDE) data.setProperty(item, number);
    for (const char* item : NARROW) data.setProperty(item, static_cast<uint32_t>(number));
    return data;
}

void answer(qmf::AgentSession& session, qmf::AgentEvent& event) {
    if (event.getMethodName() != "echo") {
        session.raiseException(event, "no such method");
        return;
    }
    event.addReturnArgument("sequence", event.getArguments()["sequence"]);
    event.addReturnArgument("body", event.getArguments()["body"]);
    session.methodSuccess(event);
}

void raise(qmf::AgentSession& session, const qmf::Schema& schema, uint64_t count) {
    for (uint64_t number = 0; number < count; ++number) {
        qmf::Data event(schema);
        std::ostringstream name;
        name << "queue-" << number;
        event.setProperty("rhost", "127.0.0.1:40000");
        event.setProperty("user", "guest");
        event.setProperty("qName", name.str());
        event.setProperty("dest", "destination");
        event.setProperty("excl", false);
        event.setProperty("args", Variant::Map());
        session.raiseEvent(event, qmf::SEV_INFORM);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::cerr << "usage: agent URL amqp0-10|amqp1.0 INSTANCE OBJECTS" << std::endl;
        return 64;
    }
    try {
        qpid::messaging::Connection connection(argv[1], std::string("{protocol:'") + argv[2] + "', tcp-nodelay:True}");
        connection.open();
        qmf::AgentSession session(connection, "{interval:10}");
        session.setVendor("example.org");
        session.setProduct("bench");
        session.setInstance(argv[3]);
        qmf::Schema queues = queueSchema(), brokers = brokerSchema(), events = eventSchema();
        session.registerSchema(queues);
        session.registerSchema(brokers);
        session.registerSchema(events);
        session.open();
        qmf::Data broker(brokers);
        broker.setProperty("name", "bench");
        session.addData(broker, "org.apache.qpid.broker:broker:bench");
        for (uint64_t number = 0; number < std::strtoull(argv[4], 0, 10); ++number) {
            qmf::Data data = queue(queues, number);
            session.addData(data, "org.apache.qpid.broker:queue:" + data.getProperty("name").asString());
        }
        std::cout << "ready" << std::endl;
        std::atomic<bool> running(true);
        std::thread commands([&] {
            std::string word;
            uint64_t count;
            while (std::cin >> word >> count) {
                if (word == "events") raise(session, events, count);
                std::cout << "done" << std::endl;
            }
            running = false;
        });
        qmf::AgentEvent event;
        while (running)
            if (session.nextEvent(event, qpid::messaging::Duration(200)) && event.getType() == qmf::AGENT_METHOD)
                answer(session, event);
        commands.join();
        session.close();
        connection.close();
        return 0;
    } catch (const qpid::types::Exception& error) {
        std::cerr << "agent: " << error.what() << std::endl;
        return 1;
    }
}
