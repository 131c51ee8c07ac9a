// Requests and responses with qpid::messaging over AMQP 1.0, one at a time.
//
//     requests respond URL QUEUE
//     requests ask URL QUEUE SIZE COUNT
//
// The first says "ready" and answers until the queue is deleted; the second prints the seconds that its requests took.

#include <qpid/messaging/Address.h>
#include <qpid/messaging/Connection.h>
#include <qpid/messaging/Duration.h>
#include <qpid/messaging/Message.h>
#include <qpid/messaging/Receiver.h>
#include <qpid/messaging/Sender.h>
#include <qpid/messaging/Session.h>
#include <qpid/messaging/exceptions.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

using namespace qpid::messaging;

namespace {

void respond(Session session, const std::string& queue) {
    Receiver receiver = session.createReceiver(queue);
    receiver.setCapacity(10);
    std::map<std::string, Sender> senders;
    std::cout << "ready" << std::endl;
    for (;;) {
        Message request = receiver.fetch();
        const Address to = request.getReplyTo();
        auto found = senders.find(to.getName());
        if (found == senders.end())
            found = senders.emplace(to.getName(), session.createSender(to)).first;
        Message response(request.getContent());
        response.setCorrelationId(request.getCorrelationId());
        found->second.send(response, false);
        session.acknowledge(request, false);
    }
}

double ask(Session session, const std::string& queue, std::size_t size, int count) {
    Sender sender = session.createSender(queue);
    Receiver receiver = session.createReceiver("#");
    receiver.setCapacity(10);
    const std::string content(size, 'x');
    const auto begin = std::chrono::steady_clock::now();
    for (int number = 0; number < count; ++number) {
        Message request(content);
        request.setReplyTo(receiver.getAddress());
        request.setCorrelationId(std::to_string(number));
        sender.send(request, false);
        Message response = receiver.fetch(Duration::SECOND * 60);
        if (response.getCorrelationId() != std::to_string(number))
            throw MessagingException("a request got the response of another one");
        session.acknowledge(response, false);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

} // namespace

int main(int count, char** arguments) {
    if (count != 4 && count != 6) {
        std::cerr << "requests respond URL QUEUE | ask URL QUEUE SIZE COUNT" << std::endl;
        return 2;
    }
    Connection connection(arguments[2], "{protocol: amqp1.0}");
    try {
        connection.open();
        Session session = connection.createSession();
        if (count == 4)
            respond(session, arguments[3]);
        else
            std::cout << ask(session, arguments[3], std::atoi(arguments[4]), std::atoi(arguments[5])) << std::endl;
        connection.close();
        return 0;
    } catch (const std::exception& error) {
        if (count == 4)
            return 0; // the queue was deleted
        std::cerr << "requests: " << error.what() << std::endl;
        return 1;
    }
}
