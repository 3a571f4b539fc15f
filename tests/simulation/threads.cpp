/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the product are actors on the node of their process; locks and conditions
 * are those of SimGrid. Only one actor runs at a time. */
#include "engine.h"
#include "libc.h"

#include <cerrno>
#include <ctime>
#include <pthread.h>

namespace s4u = simgrid::s4u;
using sim::Machine;
using sim::Process;

namespace
{

/* The simulator's contents of a pthread_mutex_t and a pthread_cond_t. */
struct Lock {
    s4u::MutexPtr mutex = s4u::Mutex::create();
};

struct Condition {
    s4u::ConditionVariablePtr condition = s4u::ConditionVariable::create();
};

/* Returns the object behind a pthread object that was set to zero or initialized. */
template <typename T, typename P> T &behind(P *place)
{
    T *&object = *reinterpret_cast<T **>(place);
    if (!object) object = new T;
    return *object;
}

template <typename T, typename P> int destroy(P *place)
{
    T *&object = *reinterpret_cast<T **>(place);
    delete object;
    object = nullptr;
    return 0;
}

void resume()
{
    simulated_environ = Machine::self().environ.data();
}

} // namespace

extern "C" {

int simulated_pthread_create(pthread_t *thread, const pthread_attr_t *,
                             void *(*start)(void *), void *argument)
{
    Process &p = Machine::self();
    sim::Fate fate = p.machine->enter({"thread", "", false, false, false});
    if (fate.error) return -fate.error;
    s4u::ActorPtr actor = s4u::Actor::init(p.program + ".thread", p.node->host);
    actor->set_data(&p);
    p.actors.push_back(actor);
    *thread = p.actors.size() - 1;
    actor->start([start, argument] { start(argument); });
    return 0;
}

int simulated_pthread_join(pthread_t thread, void **value)
{
    if (value) *value = nullptr;
    Machine::self().actors[thread]->join();
    resume();
    return 0;
}

int simulated_pthread_detach(pthread_t)
{
    return 0;
}

int simulated_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *)
{
    *reinterpret_cast<Lock **>(mutex) = nullptr;
    return 0;
}

int simulated_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    return destroy<Lock>(mutex);
}

int simulated_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    behind<Lock>(mutex).mutex->lock();
    resume();
    return 0;
}

int simulated_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    behind<Lock>(mutex).mutex->unlock();
    return 0;
}

int simulated_pthread_condattr_init(pthread_condattr_t *)
{
    return 0;
}

int simulated_pthread_condattr_destroy(pthread_condattr_t *)
{
    return 0;
}

int simulated_pthread_condattr_setclock(pthread_condattr_t *, clockid_t)
{
    return 0;
}

int simulated_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *)
{
    *reinterpret_cast<Condition **>(condition) = nullptr;
    return 0;
}

int simulated_pthread_cond_destroy(pthread_cond_t *condition)
{
    return destroy<Condition>(condition);
}

int simulated_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    s4u::Mutex *held = behind<Lock>(mutex).mutex.get();
    std::unique_lock<s4u::Mutex> lock(*held, std::adopt_lock);
    behind<Condition>(condition).condition->wait(lock);
    lock.release();
    resume();
    return 0;
}

/* Always on the monotonic clock: the product uses no other one. */
int simulated_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                     const struct timespec *end)
{
    struct timespec now;
    simulated_clock_gettime(CLOCK_MONOTONIC, &now);
    double left = static_cast<double>(end->tv_sec - now.tv_sec) +
                  1e-9 * static_cast<double>(end->tv_nsec - now.tv_nsec);
    if (left <= 0) return ETIMEDOUT;
    std::unique_lock<s4u::Mutex> lock(*behind<Lock>(mutex).mutex, std::adopt_lock);
    auto verdict = behind<Condition>(condition).condition->wait_for(lock, left);
    lock.release();
    resume();
    return verdict == std::cv_status::timeout ? ETIMEDOUT : 0;
}

int simulated_pthread_cond_signal(pthread_cond_t *condition)
{
    behind<Condition>(condition).condition->notify_one();
    return 0;
}

int simulated_pthread_cond_broadcast(pthread_cond_t *condition)
{
    behind<Condition>(condition).condition->notify_all();
    return 0;
}

} // extern "C"
