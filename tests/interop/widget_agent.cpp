// A libqmf2 agent for the tests: example.org:widget-agent:INSTANCE, with 20 widgets.
//
//     widget_agent URL amqp0-10|amqp1.0 INSTANCE
//
// Says "ready", raises an event every two seconds, and ends with its standard input.

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
#include <cctype>
#include <chrono>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

using qpid::messaging::Duration;
using qpid::types::Variant;

namespace {

const char* const PACKAGE = "org.example.widgets";
const int WIDGETS = 20;

qmf::SchemaProperty property(const std::string& name, int type, int direction = qmf::DIR_IN) {
    qmf::SchemaProperty made(name, type);
    made.setDirection(direction);
    return made;
}

qmf::Schema widgetSchema() {
    qmf::Schema schema(qmf::SCHEMA_TYPE_DATA, PACKAGE, "widget");
    qmf::SchemaProperty count("count", qmf::SCHEMA_DATA_INT);
    count.setUnit("item");
    count.setDesc("Count");
    schema.addProperty(property("name", qmf::SCHEMA_DATA_STRING));
    schema.addProperty(count);
    schema.addProperty(property("ratio", qmf::SCHEMA_DATA_FLOAT));
    schema.addProperty(property("enabled", qmf::SCHEMA_DATA_BOOL));
    schema.addProperty(property("opts", qmf::SCHEMA_DATA_MAP));
    schema.addProperty(property("tags", qmf::SCHEMA_DATA_LIST));
    qmf::SchemaMethod echo("echo");
    echo.addArgument(property("sequence", qmf::SCHEMA_DATA_INT, qmf::DIR_IN_OUT));
    echo.addArgument(property("text", qmf::SCHEMA_DATA_STRING));
    echo.addArgument(property("reply", qmf::SCHEMA_DATA_STRING, qmf::DIR_OUT));
    schema.addMethod(echo);
    schema.addMethod(qmf::SchemaMethod("fail"));
    return schema;
}

qmf::Schema alarmSchema() {
    qmf::Schema schema(qmf::SCHEMA_TYPE_EVENT, PACKAGE, "widgetAlarm");
    schema.addProperty(property("name", qmf::SCHEMA_DATA_STRING));
    schema.addProperty(property("level", qmf::SCHEMA_DATA_INT));
    return schema;
}

void addWidgets(qmf::AgentSession& session, const qmf::Schema& schema) {
    for (int number = 0; number < WIDGETS; ++number) {
        std::ostringstream name;
        name << "widget-" << number;
        Variant::Map options;
        options["k"] = "v";
        options["n"] = uint8_t(7);
        Variant::List tags;
        tags.push_back("a");
        tags.push_back(uint16_t(2));
        qmf::Data data(schema);
        data.setProperty("name", name.str());
        data.setProperty("count", uint32_t(number));
        data.setProperty("ratio", number / 2.0);
        data.setProperty("enabled", number % 2 == 0);
        data.setProperty("opts", options);
        data.setProperty("tags", tags);
        session.addData(data, name.str());
    }
}

void answer(qmf::AgentSession& session, qmf::AgentEvent& event) {
    if (event.getMethodName() == "fail") {
        session.raiseException(event, "widget jammed");
        return;
    }
    const Variant::Map& arguments = event.getArguments();
    std::string text = arguments.find("text")->second.asString();
    // Only ASCII letters: text is UTF-8.
    for (char& letter : text)
        if (letter >= 'a' && letter <= 'z') letter = char(letter - 'a' + 'A');
    event.addReturnArgument("sequence", arguments.find("sequence")->second);
    event.addReturnArgument("reply", text);
    session.methodSuccess(event);
}

void raiseAlarm(qmf::AgentSession& session, const qmf::Schema& schema) {
    qmf::Data data(schema);
    data.setProperty("name", "widget-1");
    data.setProperty("level", uint32_t(91));
    session.raiseEvent(data, qmf::SEV_CRIT);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::cerr << "usage: widget_agent URL amqp0-10|amqp1.0 INSTANCE" << std::endl;
        return 2;
    }
    try {
        qpid::messaging::Connection connection(argv[1], std::string("{protocol: '") + argv[2] + "'}");
        connection.open();
        qmf::AgentSession session(connection, "{interval:5, max-thread-wait-time:1}");
        session.setVendor("example.org");
        session.setProduct("widget-agent");
        session.setInstance(argv[3]);
        session.setAttribute("site", "lab");
        session.open();
        qmf::Schema widget = widgetSchema(), alarm = alarmSchema();
        session.registerSchema(widget);
        session.registerSchema(alarm);
        addWidgets(session, widget);

        std::atomic<bool> ended(false);
        std::thread reader([&ended] {
            while (std::cin.get() != std::char_traits<char>::eof()) {
            }
            ended = true;
        });
        std::cout << "ready" << std::endl;
        auto due = std::chrono::steady_clock::now();
        while (!ended) {
            if (std::chrono::steady_clock::now() >= due) {
                raiseAlarm(session, alarm);
                due += std::chrono::seconds(2);
            }
            qmf::AgentEvent event;
            if (session.nextEvent(event, Duration(100)) && event.getType() == qmf::AGENT_METHOD) answer(session, event);
        }
        reader.join();
        session.close();
        connection.close();
    } catch (const qpid::types::Exception& error) {
        std::cerr << "widget_agent: " << error.what() << std::endl;
        return 1;
    }
    return 0;
}
