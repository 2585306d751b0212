package capsule

import "testing"

// manyThings is a run with a tool, a plan, a decision and what follows it, and one
// that is cut off.
const manyThings = `
0.000 a connect
0.010 a> run:start {"threadId":"t1","messageId":"u1","input":"Book a flight"}
0.020 a< t1/r1/1 RUN_STARTED {"message":{"id":"u1","role":"user","content":"Book a flight"}}
0.300 a< t1/r1/2 REASONING_START {"messageId":"th"}
0.320 a< t1/r1/3 REASONING_CONTENT {"messageId":"th","delta":"First "}
0.340 a< t1/r1/4 REASONING_CONTENT {"messageId":"th","delta":"I look."}
0.350 a< t1/r1/5 REASONING_END {"messageId":"th"}
0.400 a< t1/r1/6 TOOL_CALL_START {"toolCallId":"k1","toolCallName":"search"}
0.410 a< t1/r1/7 TOOL_CALL_ARGS {"toolCallId":"k1","delta":"{\"to\":"}
0.420 a< t1/r1/8 TOOL_CALL_ARGS {"toolCallId":"k1","delta":"\"LIS\"}"}
0.430 a< t1/r1/9 TOOL_CALL_END {"toolCallId":"k1"}
0.900 a< t1/r1/10 TOOL_CALL_RESULT {"toolCallId":"k1","content":"TP 533"}
0.910 a< t1/r1/11 TODOS_SNAPSHOT {"todos":[{"content":"book","status":"pending"}]}
0.950 a< t1/r1/12 INTERRUPT {"interruptId":"i1","payload":{"question":"Book it?","options":["yes","no"]}}
0.960 a< t1/r1/13 RUN_PAUSED
0.970 a< t1/r1/14 RUN_FINISHED
5.000 a> run:resume {"threadId":"t1","interruptId":"i1","answer":"yes"}
5.010 a< t1/r2/1 RUN_STARTED
5.300 a< t1/r2/2 TEXT_MESSAGE_START {"messageId":"m1","role":"assistant"}
5.320 a< t1/r2/3 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"It is "}
5.340 a< t1/r2/4 TEXT_MESSAGE_CONTENT {"messageId":"m1","delta":"booked, 😀."}
5.350 a< t1/r2/5 TEXT_MESSAGE_END {"messageId":"m1"}
5.360 a< t1/r2/6 RUN_FINISHED
8.000 a> run:start {"threadId":"t1","messageId":"u2","input":"And back?"}
8.010 a< t1/r3/1 RUN_STARTED {"message":{"id":"u2","role":"user","content":"And back?"}}
8.300 a< t1/r3/2 TEXT_MESSAGE_START {"messageId":"m2","role":"assistant"}
8.320 a< t1/r3/3 TEXT_MESSAGE_CONTENT {"messageId":"m2","delta":"There are"}
8.400 a< t1/r3/4 RUN_ERROR {"code":"MODEL_OVERLOADED","message":"Try later."}
9.000 a end client 1000
`

// TestForms shows what the forms look like that tell a recording in other words.
func TestForms(t *testing.T) {
	tape := record(t, talk(t, manyThings))
	o := Options{Title: "Booking", Comment: "Two runs, and a decision between"}
	o.Format = AGUI
	golden(t, "testdata/forms.agui.jsonl", export(t, tape, o))
	o.Format = Scenario
	golden(t, "testdata/forms.yaml", export(t, tape, o))
	o.Format = HAR
	golden(t, "testdata/forms.har", export(t, tape, o))
}
