// A libqmf2 console that measures itself.
//
//     console URL amqp0-10|amqp1.0 INSTANCE
//
// Waits for the agent of that instance, says "ready", then does what lines on standard input say and answers each with a
// line of figures. Ends with its input.
//
//     objects COUNT    gets all queues:                 "objects SECONDS"
//     events COUNT     waits for so many events:        "SECONDS", from the first to the last; says "waiting" first
//     calls COUNT      calls echo one after the other:  "P50 P99", in microseconds
//     flight COUNT     calls echo, 64 at a time:        "SECONDS"

#include <qmf/Agent.h>
#include <qmf/ConsoleEvent.h>
#include <qmf/ConsoleSession.h>
#include <qmf/Data.h>
#include <qmf/DataAddr.h>
#include <qmf/Query.h>
#include <qmf/SchemaTypes.h>
#include <qpid/messaging/Connection.h>
#include <qpid/messaging/Duration.h>
#include <qpid/types/Exception.h>
#include <qpid/types/Variant.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

using qpid::messaging::Duration;
using qpid::types::Variant;
using Clock = std::chrono::steady_clock;

namespace {

const int IN_FLIGHT = 64;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

qmf::Agent find(qmf::ConsoleSession& session, const std::string& instance) {
    qmf::ConsoleEvent event;
    for (Clock::time_point begin = Clock::now(); since(begin) < 30;) {
        for (uint32_t index = 0; index < session.getAgentCount(); ++index)
            if (session.getAgent(index).getInstance() == instance) return session.getAgent(index);
        session.nextEvent(event, Duration::SECOND);
    }
    throw std::runtime_error("no such agent");
}

qmf::ConsoleEvent ask(qmf::Agent& agent, const char* name) {
    qmf::ConsoleEvent event = agent.query(qmf::Query(qmf::QUERY_OBJECT, name, "org.apache.qpid.broker"));
    if (event.getType() != qmf::CONSOLE_QUERY_RESPONSE) throw std::runtime_error("the query failed");
    return event;
}

Variant::Map arguments(uint32_t number) {
    Variant::Map map;
    map["sequence"] = number;
    map["body"] = "hello";
    return map;
}

void objects(qmf::Agent& agent) {
    Clock::time_point begin = Clock::now();
    qmf::ConsoleEvent answer = ask(agent, "queue");
    std::cout << answer.getDataCount() << " " << since(begin) << std::endl;
}

void events(qmf::ConsoleSession& session, uint64_t count) {
    qmf::ConsoleEvent event;
    while (session.nextEvent(event, Duration::IMMEDIATE)) {}
    std::cout << "waiting" << std::endl;
    Clock::time_point begin;
    for (uint64_t seen = 0; seen < count;) {
        if (!session.nextEvent(event, Duration::MINUTE)) throw std::runtime_error("events are missing");
        if (event.getType() != qmf::CONSOLE_EVENT) continue;
        if (event.getDataCount() == 0 || event.getData(0).getProperty("qName").asString().empty()) continue;
        if (seen++ == 0) begin = Clock::now();
    }
    std::cout << since(begin) << std::endl;
}

void calls(qmf::Agent& agent, const qmf::DataAddr& address, uint32_t count) {
    std::vector<double> times;
    for (uint32_t number = 0; number < count; ++number) {
        Clock::time_point begin = Clock::now();
        qmf::ConsoleEvent answer = agent.callMethod("echo", arguments(number), address);
        times.push_back(since(begin) * 1e6);
        if (answer.getType() != qmf::CONSOLE_METHOD_RESPONSE) throw std::runtime_error("a call failed");
    }
    std::sort(times.begin(), times.end());
    std::cout << times[count / 2] << " " << times[count * 99 / 100] << std::endl;
}

void flight(qmf::ConsoleSession& session, qmf::Agent& agent, const qmf::DataAddr& address, uint32_t count) {
    qmf::ConsoleEvent event;
    while (session.nextEvent(event, Duration::IMMEDIATE)) {}
    Clock::time_point begin = Clock::now();
    uint32_t sent = 0, answered = 0;
    while (answered < count) {
        for (; sent < count && sent < answered + IN_FLIGHT; ++sent)
            agent.callMethodAsync("echo", arguments(sent), address);
        if (!session.nextEvent(event, Duration::MINUTE)) throw std::runtime_error("answers are missing");
        if (event.getType() == qmf::CONSOLE_METHOD_RESPONSE) ++answered;
        if (event.getType() == qmf::CONSOLE_EXCEPTION) throw std::runtime_error("a call failed");
    }
    std::cout << since(begin) << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::cerr << "usage: console URL amqp0-10|amqp1.0 INSTANCE" << std::endl;
        return 64;
    }
    try {
        qpid::messaging::Connection connection(argv[1], std::string("{protocol:'") + argv[2] + "', tcp-nodelay:True}");
        connection.open();
        qmf::ConsoleSession session(connection, "{max-thread-wait-time:1}");
        session.setAgentFilter("");
        session.open();
        qmf::Agent agent = find(session, argv[3]);
        const qmf::DataAddr address = ask(agent, "broker").getData(0).getAddr();
        std::cout << "ready" << std::endl;
        std::string word;
        uint64_t count;
        while (std::cin >> word >> count) {
            if (word == "objects") objects(agent);
            if (word == "events") events(session, count);
            if (word == "calls") calls(agent, address, count);
            if (word == "flight") flight(session, agent, address, count);
        }
        session.close();
        connection.close();
        return 0;
    } catch (const qpid::types::Exception& error) {
        std::cerr << "console: " << error.what() << std::endl;
    } catch (const std::exception& error) {
        std::cerr << "console: " << error.what() << std::endl;
    }
    return 1;
}
