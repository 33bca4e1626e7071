/* SPDX-License-Identifier: Apache-2.0 */
/* Ticks of 1 ms of CPU time and something of C++'s library that waits, sleeps or reads. */
/* run: cpp_mutex mutex */
/* run: cpp_condition condition */
/* run: cpp_sleep_for sleep_for */
/* run: cpp_future future */
/* run: cpp_shared_mutex shared */
/* run: cpp_ifstream ifstream */
/* run: cpp_exception exception */
#include "truth.h"
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::mutex lock;
static std::shared_mutex shared;
static std::condition_variable condition;
static bool done;

static void other(const std::string &how, std::promise<void> &ready, std::promise<int> &answer)
{
	std::unique_lock<std::mutex> held(lock, std::defer_lock);
	if (how == "mutex")
		held.lock();
	if (how == "shared")
		shared.lock_shared();
	ready.set_value();
	std::this_thread::sleep_for(std::chrono::milliseconds(5));
	if (how == "shared")
		shared.unlock_shared();
	if (how == "condition") {
		held.lock();
		done = true;
		condition.notify_one();
	}
	if (how == "future")
		answer.set_value(1);
}

static void tick(const std::string &how, std::future<int> answer)
{
	truth_burn(MS);
	truth_wait_begin();
	if (how == "mutex") {
		std::lock_guard<std::mutex> guard(lock);
	} else if (how == "condition") {
		std::unique_lock<std::mutex> held(lock);
		condition.wait(held, [] { return done; });
	} else if (how == "future") {
		answer.get();
	} else if (how == "shared") {
		std::unique_lock<std::shared_mutex> guard(shared);
	} else if (how == "sleep_for") {
		std::this_thread::sleep_for(std::chrono::milliseconds(5));
	} else if (how == "exception") {
		for (int i = 0; i < 1000; i++)
			try {
				throw std::runtime_error("tick");
			} catch (const std::exception &) {
			}
	} else {
		std::ifstream file("/proc/self/exe", std::ios::binary);
		std::vector<char> data(1 << 16);
		for (int i = 0; i < 50; i++) {
			file.clear();
			file.seekg(0);
			while (file.read(data.data(), (std::streamsize)data.size()))
				;
		}
	}
	if (how == "mutex" || how == "condition" || how == "future" || how == "shared")
		truth_wait_end();
}

int main(int argc, char **argv)
{
	std::string how = argc > 1 ? argv[1] : "mutex";
	int loop = truth_loop();

	for (int i = 0; i < 8; i++) {
		std::promise<void> ready;
		std::promise<int> answer;
		done = false;
		std::thread thread(other, how, std::ref(ready), std::ref(answer));
		ready.get_future().wait();
		truth_next(loop);
		struct truth_poll *poll = truth_begin(argc > 1 ? argv[1] : "mutex");
		tick(how, answer.get_future());
		truth_end(poll);
		truth_next(loop);
		thread.join();
	}
	truth_next(loop);
	truth_print();
	return 0;
}
