// A libqmf2 console for the tests, driven by lines on its standard input.
//
//     console URL amqp0-10|amqp1.0
//
// Words of a line are separated by spaces; a space or % within one is written %20 or %25, and nothing at all as %. A
// value is its type and then its words, maps and lists with the number of their members first:
//
//     void | bool 1 | uint8 5 | ... | int64 -5 | float 0.5 | double 0.5 | str text | uuid text
//     list 2 uint8 1 str x | map 1 key uint8 1
//
// Each command is answered by any number of lines and a line "." at the end; a failed one by "error TEXT" before it.
//
//     agents                                  agent NAME EPOCH ATTRIBUTES(map)
//     query AGENT PACKAGE CLASS PREDICATE     object NAME AGENT EPOCH PACKAGE CLASS HASH VALUES(map)
//     get AGENT NAME EPOCH                    the same
//     call AGENT NAME EPOCH METHOD INPUTS     result OUTPUTS(map) | exception VALUES(map)
//     schemas AGENT                           schema data|event PACKAGE CLASS HASH
//     schema AGENT PACKAGE CLASS              class DESC SEVERITY, then property|method|argument lines
//     news                                    event AGENT PACKAGE CLASS SEVERITY TIMESTAMP VALUES(map) | gone AGENT

#include <qmf/Agent.h>
#include <qmf/ConsoleEvent.h>
#include <qmf/ConsoleSession.h>
#include <qmf/Data.h>
#include <qmf/DataAddr.h>
#include <qmf/Query.h>
#include <qmf/Schema.h>
#include <qmf/SchemaId.h>
#include <qmf/SchemaMethod.h>
#include <qmf/SchemaProperty.h>
#include <qmf/SchemaTypes.h>
#include <qpid/messaging/Connection.h>
#include <qpid/messaging/Duration.h>
#include <qpid/types/Exception.h>
#include <qpid/types/Uuid.h>
#include <qpid/types/Variant.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>

using qpid::messaging::Duration;
using qpid::types::Variant;

namespace {

const Duration PATIENCE(10 * 1000);

std::string escaped(const std::string& text) {
    static const char HEX[] = "0123456789ABCDEF";
    if (text.empty()) return "%";
    std::string made;
    for (unsigned char c : text) {
        if (c <= ' ' || c == '%' || c > '~') {
            made += '%';
            made += HEX[c >> 4];
            made += HEX[c & 15];
        } else {
            made += char(c);
        }
    }
    return made;
}

std::string word(std::istream& in) {
    std::string text, made;
    if (!(in >> text)) throw std::runtime_error("a word is missing");
    if (text == "%") return made;
    for (size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '%' && at + 2 < text.size()) {
            made += char(std::stoi(text.substr(at + 1, 2), nullptr, 16));
            at += 2;
        } else {
            made += text[at];
        }
    }
    return made;
}

qpid::types::Uuid uuid(const std::string& text) {
    std::string digits;
    for (char c : text)
        if (c != '-') digits += c;
    if (digits.size() != 32) throw std::runtime_error("no uuid: " + text);
    unsigned char bytes[16];
    for (int at = 0; at < 16; ++at) bytes[at] = (unsigned char)std::stoi(digits.substr(size_t(2 * at), 2), nullptr, 16);
    return qpid::types::Uuid(bytes);
}

Variant value(std::istream& in) {
    const std::string type = word(in);
    if (type == "void") return Variant();
    if (type == "map") {
        Variant::Map members;
        for (int left = std::stoi(word(in)); left > 0; --left) {
            const std::string key = word(in);
            members[key] = value(in);
        }
        return members;
    }
    if (type == "list") {
        Variant::List members;
        for (int left = std::stoi(word(in)); left > 0; --left) members.push_back(value(in));
        return members;
    }
    const std::string text = word(in);
    if (type == "bool") return Variant(text == "1");
    if (type == "uint8") return Variant(uint8_t(std::stoul(text)));
    if (type == "uint16") return Variant(uint16_t(std::stoul(text)));
    if (type == "uint32") return Variant(uint32_t(std::stoul(text)));
    if (type == "uint64") return Variant(uint64_t(std::stoull(text)));
    if (type == "int8") return Variant(int8_t(std::stol(text)));
    if (type == "int16") return Variant(int16_t(std::stol(text)));
    if (type == "int32") return Variant(int32_t(std::stol(text)));
    if (type == "int64") return Variant(int64_t(std::stoll(text)));
    if (type == "float") return Variant(std::stof(text));
    if (type == "double") return Variant(std::stod(text));
    if (type == "uuid") return Variant(uuid(text));
    if (type == "str") {
        Variant made(text);
        made.setEncoding("utf8");
        return made;
    }
    throw std::runtime_error("no such type: " + type);
}

void show(std::ostream& out, const Variant& item) {
    switch (item.getType()) {
        case qpid::types::VAR_VOID: out << " void"; break;
        case qpid::types::VAR_BOOL: out << " bool " << (item.asBool() ? 1 : 0); break;
        case qpid::types::VAR_UINT8: out << " uint8 " << int(item.asUint8()); break;
        case qpid::types::VAR_UINT16: out << " uint16 " << item.asUint16(); break;
        case qpid::types::VAR_UINT32: out << " uint32 " << item.asUint32(); break;
        case qpid::types::VAR_UINT64: out << " uint64 " << item.asUint64(); break;
        case qpid::types::VAR_INT8: out << " int8 " << int(item.asInt8()); break;
        case qpid::types::VAR_INT16: out << " int16 " << item.asInt16(); break;
        case qpid::types::VAR_INT32: out << " int32 " << item.asInt32(); break;
        case qpid::types::VAR_INT64: out << " int64 " << item.asInt64(); break;
        case qpid::types::VAR_FLOAT: out << " float " << item.asFloat(); break;
        case qpid::types::VAR_DOUBLE: out << " double " << item.asDouble(); break;
        case qpid::types::VAR_STRING: out << " str " << escaped(item.asString()); break;
        case qpid::types::VAR_UUID: out << " uuid " << item.asUuid().str(); break;
        case qpid::types::VAR_LIST:
            out << " list " << item.asList().size();
            for (const Variant& member : item.asList()) show(out, member);
            break;
        case qpid::types::VAR_MAP:
            out << " map " << item.asMap().size();
            for (const auto& member : item.asMap()) {
                out << " " << escaped(member.first);
                show(out, member.second);
            }
            break;
    }
}

qmf::Agent agentCalled(const qmf::ConsoleSession& session, const std::string& name) {
    for (uint32_t index = 0; index < session.getAgentCount(); ++index) {
        qmf::Agent agent = session.getAgent(index);
        if (agent.getName() == name) return agent;
    }
    throw std::runtime_error("no agent " + name);
}

void showAgents(const qmf::ConsoleSession& session) {
    for (uint32_t index = 0; index < session.getAgentCount(); ++index) {
        const qmf::Agent agent = session.getAgent(index);
        std::cout << "agent " << escaped(agent.getName()) << " " << agent.getEpoch();
        show(std::cout, agent.getAttributes());
        std::cout << "\n";
    }
}

void showSchemaId(const qmf::SchemaId& id) {
    std::cout << escaped(id.getPackageName()) << " " << escaped(id.getName()) << " " << id.getHash().str();
}

void showObjects(qmf::Agent& agent, const qmf::Query& query) {
    qmf::ConsoleEvent answer = agent.query(query, PATIENCE);
    if (answer.getType() == qmf::CONSOLE_EXCEPTION) {
        std::cout << "exception";
        show(std::cout, answer.getDataCount() ? Variant(answer.getData(0).getProperties()) : Variant());
        std::cout << "\n";
        return;
    }
    for (uint32_t index = 0; index < answer.getDataCount(); ++index) {
        const qmf::Data data = answer.getData(index);
        const qmf::DataAddr& address = data.getAddr();
        std::cout << "object " << escaped(address.getName()) << " " << escaped(address.getAgentName()) << " "
                  << address.getAgentEpoch() << " ";
        showSchemaId(data.getSchemaId());
        show(std::cout, data.getProperties());
        std::cout << "\n";
    }
}

void call(qmf::Agent& agent, std::istream& in) {
    const std::string name = word(in);
    const uint32_t epoch = uint32_t(std::stoul(word(in)));
    const std::string method = word(in);
    const Variant inputs = value(in);
    const qmf::DataAddr address(name, agent.getName(), epoch);
    qmf::ConsoleEvent answer = agent.callMethod(method, inputs.asMap(), address, PATIENCE);
    if (answer.getType() == qmf::CONSOLE_METHOD_RESPONSE) {
        std::cout << "result";
        show(std::cout, answer.getArguments());
    } else {
        std::cout << "exception";
        show(std::cout, answer.getDataCount() ? Variant(answer.getData(0).getProperties()) : Variant());
    }
    std::cout << "\n";
}

void showSchemas(qmf::Agent& agent) {
    qmf::ConsoleEvent answer = agent.querySchema(PATIENCE);
    if (answer.getType() == qmf::CONSOLE_EXCEPTION) throw std::runtime_error("no schemas");
    for (uint32_t package = 0; package < agent.getPackageCount(); ++package) {
        const std::string name = agent.getPackage(package);
        for (uint32_t index = 0; index < agent.getSchemaIdCount(name); ++index) {
            const qmf::SchemaId id = agent.getSchemaId(name, index);
            std::cout << "schema " << (id.getType() == qmf::SCHEMA_TYPE_EVENT ? "event " : "data ");
            showSchemaId(id);
            std::cout << "\n";
        }
    }
}

void showProperty(const char* kind, const qmf::SchemaProperty& item) {
    std::cout << kind << " " << escaped(item.getName()) << " " << item.getType() << " " << item.getAccess() << " "
              << item.isIndex() << " " << item.isOptional() << " " << escaped(item.getUnit()) << " "
              << escaped(item.getDesc()) << " " << escaped(item.getSubtype()) << " " << item.getDirection() << "\n";
}

void showSchema(qmf::Agent& agent, const std::string& package, const std::string& name) {
    for (uint32_t index = 0; index < agent.getSchemaIdCount(package); ++index) {
        const qmf::SchemaId id = agent.getSchemaId(package, index);
        if (id.getName() != name) continue;
        const qmf::Schema schema = agent.getSchema(id, PATIENCE);
        std::cout << "class " << escaped(schema.getDesc()) << " " << schema.getDefaultSeverity() << "\n";
        for (uint32_t at = 0; at < schema.getPropertyCount(); ++at) showProperty("property", schema.getProperty(at));
        for (uint32_t at = 0; at < schema.getMethodCount(); ++at) {
            const qmf::SchemaMethod method = schema.getMethod(at);
            std::cout << "method " << escaped(method.getName()) << " " << escaped(method.getDesc()) << "\n";
            for (uint32_t arg = 0; arg < method.getArgumentCount(); ++arg)
                showProperty("argument", method.getArgument(arg));
        }
        return;
    }
    throw std::runtime_error("no schema " + name);
}

void showNews(qmf::ConsoleSession& session) {
    qmf::ConsoleEvent news;
    while (session.nextEvent(news, Duration::IMMEDIATE)) {
        if (news.getType() == qmf::CONSOLE_AGENT_DEL)
            std::cout << "gone " << escaped(news.getAgent().getName()) << "\n";
        if (news.getType() != qmf::CONSOLE_EVENT) continue;
        for (uint32_t index = 0; index < news.getDataCount(); ++index) {
            const qmf::Data data = news.getData(index);
            std::cout << "event " << escaped(news.getAgent().getName()) << " "
                      << escaped(data.getSchemaId().getPackageName()) << " " << escaped(data.getSchemaId().getName())
                      << " " << news.getSeverity() << " " << news.getTimestamp();
            show(std::cout, data.getProperties());
            std::cout << "\n";
        }
    }
}

void obey(qmf::ConsoleSession& session, const std::string& line) {
    std::istringstream in(line);
    const std::string command = word(in);
    if (command == "agents") return showAgents(session);
    if (command == "news") return showNews(session);
    qmf::Agent agent = agentCalled(session, word(in));
    if (command == "query") {
        const std::string package = word(in), name = word(in);
        qmf::Query query(qmf::QUERY_OBJECT, name, package);
        query.setPredicate(value(in).asList());
        showObjects(agent, query);
    } else if (command == "get") {
        const std::string name = word(in);
        showObjects(agent, qmf::Query(qmf::DataAddr(name, agent.getName(), uint32_t(std::stoul(word(in))))));
    } else if (command == "call") {
        call(agent, in);
    } else if (command == "schemas") {
        showSchemas(agent);
    } else if (command == "schema") {
        const std::string package = word(in), name = word(in);
        showSchema(agent, package, name);
    } else {
        throw std::runtime_error("no such command: " + command);
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: console URL amqp0-10|amqp1.0" << std::endl;
        return 2;
    }
    std::cout.precision(std::numeric_limits<double>::max_digits10);
    try {
        qpid::messaging::Connection connection(argv[1], std::string("{protocol: '") + argv[2] + "'}");
        connection.open();
        qmf::ConsoleSession session(connection, "{max-thread-wait-time:1}");
        session.setAgentFilter("");
        session.open();
        std::cout << "ready" << std::endl;
        for (std::string line; std::getline(std::cin, line);) {
            try {
                obey(session, line);
            } catch (const std::exception& error) {
                std::cout << "error " << escaped(error.what()) << "\n";
            }
            std::cout << "." << std::endl;
        }
        session.close();
        connection.close();
    } catch (const qpid::types::Exception& error) {
        std::cerr << "console: " << error.what() << std::endl;
        return 1;
    }
    return 0;
}
