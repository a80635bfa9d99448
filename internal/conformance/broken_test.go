package conformance_test

import (
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/lockkeeper/lockkeeper/internal/conformance"
)

// broken says, for each flaw, which check stands for the promise that it breaks,
// on which lock, and what is said then.
var broken = []struct {
	flaws
	lock, check, says string
}{
	{flaws{oneTooMany: true}, "mutex", "Exclusion", "granted although 1 of 1 are held"},
	{flaws{oneTooMany: true}, "semaphore", "AsManyAsFit", "granted although"},
	{flaws{nothingIsShared: true}, "rwlock", "AsManyAsFit", "waited in vain"},
	{flaws{lastComesFirst: true}, "mutex", "OrderOfArrival", "came in before its turn"},
	{flaws{smallOnesPass: true}, "rwlock", "OrderOfArrival", "came in before its turn"},
	{flaws{nobodyIsWoken: true}, "mutex", "Released", "waited in vain"},
	{flaws{nobodyIsWoken: true}, "mutex", "Exclusion", "waited in vain for everybody's turn"},
	{flaws{tryBarges: true}, "rwlock", "TryBehindAWaiter", "granted, want held by another"},
	{flaws{tryNeverSucceeds: true}, "mutex", "TryOnAFreeLock", "not granted: "},
	{flaws{tryCountsWrong: true}, "mutex", "TryOnABusyLock", "waited in vain"},
	{flaws{failedTryStays: true}, "mutex", "TryOnABusyLock", "in line: "},

	{flaws{entryIsUnchecked: true}, "mutex", "ContextHasEndedOnEntry", ", want enough"},
	{flaws{contextIsIgnored: true}, "mutex", "ContextEndsWhileWaiting", "waited in vain"},
	{flaws{tieIsLeftToChance: true}, "mutex", "ContextEndsAsTheTurnComes", "granted"},
	{flaws{contextBoundsTheHold: true}, "mutex", "ContextEndsAfterTheGrant", "the grant ended with the context of the call"},
	{flaws{waitersStay: true}, "mutex", "ContextEndsWhileWaiting", "in line: "},
	{flaws{waitersStay: true}, "mutex", "ContextEndsAtEachStep", "waited in vain"},
	{flaws{neitherGrantNorError: true}, "mutex", "OrderOfArrival", "grant <nil> together with error <nil>"},
	{flaws{cutOffIsDeaf: true}, "mutex", "ContextEndsWhileCutOff", "want enough"},

	{flaws{tokensFall: true}, "mutex", "Tokens", "released: token"},
	{flaws{tokensStay: true}, "mutex", "Tokens", "token 7 after 7"},
	{flaws{tokensBeginAnew: true}, "mutex", "Tokens", "removed while it was"},

	{flaws{lossIsIgnored: true}, "mutex", "CutOffWhileHolding", "granted although 1 of 1 are held"},
	{flaws{lossIsIgnored: true}, "mutex", "LostWhileHolding", "waited in vain for Done"},
	{flaws{trustsTooLong: true}, "mutex", "CutOffWhileHolding", "granted although 1 of 1 are held"},
	{flaws{removalGoesUnseen: true}, "mutex", "RemovedWhileHolding", "waited in vain for Done"},
	{flaws{removalGoesUnseen: true}, "semaphore", "EverythingIsRemoved", "waited in vain for Done"},
	{flaws{lossIsForever: true}, "mutex", "LostWhileHolding", "not granted"},
	{flaws{lossIsForever: true}, "mutex", "ReusedAfterALoss", "session lost"},
	{flaws{neverFailsOnLoss: true}, "mutex", "FailOnLoss", "waited in vain"},
	{flaws{alwaysFailsOnLoss: true}, "mutex", "LostWhileWaiting", "in line: "},
	{flaws{alwaysFailsOnLoss: true}, "mutex", "RemovedWhileWaiting", "gave up"},
	{flaws{neverFailsOnLoss: true}, "mutex", "FailOnLossWhileCutOff", "waited in vain"},
	{flaws{alwaysFailsOnLoss: true}, "mutex", "CutOffWhileWaiting", "in line: "},
	{flaws{lostWaiterPasses: true}, "mutex", "LostWhileWaiting", "waited in vain"},
	{flaws{callbacksComeTwice: true}, "mutex", "LostWhileHolding", "OnRevoke was called 2 times"},
	{flaws{callbacksComeTwice: true}, "mutex", "LostWhileNested", "OnRevoke was called"},
	{flaws{callbacksAreForgotten: true}, "mutex", "LostWhileHolding", "waited in vain for OnRevoke"},
	{flaws{callbacksBlock: true}, "mutex", "CallbacksThatBlockOrPanic", "waited in vain for"},
	{flaws{releaseIsRevocation: true}, "mutex", "NoCallbackAfterARelease", "OnRevoke was told"},
	{flaws{releaseIsRevocation: true}, "mutex", "ReleasedWhileCutOff", "OnRevoke was told"},
	{flaws{closingKeeps: true}, "mutex", "ClosedWhileHolding", "not revoked when Close returns"},
	{flaws{closingLeaves: true}, "mutex", "ClosedWhileHolding", "waited in vain"},
	{flaws{waitsOutliveClosing: true}, "mutex", "ClosedWhileWaiting", "want session closed"},
	{flaws{lateReleaseHitsOthers: true}, "mutex", "ReleasedLate", "after a late release: the newer grant"},
	{flaws{releaseIsForgotten: true}, "mutex", "Released", "waited in vain"},
	{flaws{releaseIsForgotten: true}, "mutex", "ReleasedUnderAnEndedContext", "waited in vain"},
	{flaws{releaseIsForgotten: true}, "mutex", "Do", "left behind"},
	{flaws{verifySeesGhosts: true}, "mutex", "Verify", "removed on the server"},
	{flaws{verifyIsBlind: true}, "mutex", "VerifyFindsALoss", "Verify: <nil>"},
	{flaws{noAnswerIsALoss: true}, "mutex", "VerifyWhileCutOff", "revoked"},

	{flaws{lossIsIgnored: true}, "mutex", "Remaining", "and goes on"},
	{flaws{lossIsIgnored: true}, "mutex", "DoLosesTheLock", "waited in vain for the end of the function's context"},
	{flaws{lossIsIgnored: true}, "mutex", "AllLosesOne", "waited in vain for Done"},
	{flaws{keysDiffer: true}, "mutex", "All", "by another client"},

	{flaws{ownContextIsUnknown: true}, "mutex", "LockedUnderItsOwnContext", "waited in vain"},
	{flaws{notReentrant: true}, "mutex", "Reentrant", "already held by this call chain"},
	{flaws{maxHoldIsForgotten: true}, "mutex", "MaxHold", "waited in vain"},
	{flaws{noDelay: true}, "mutex", "LockDelayAfterADeath", "open after"},
	{flaws{noDelay: true}, "mutex", "LockDelayAfterMaxHold", "open after"},
	{flaws{delayAlways: true}, "mutex", "NoLockDelayAfterARelease", "waited in vain"},
	{flaws{ownersAreLost: true}, "mutex", "Contenders", "company holds, and is somebody else's"},
	{flaws{waitersSeemToHold: true}, "mutex", "Contenders", "want {owner:bob holding:false"},
	{flaws{allSeemMine: true}, "mutex", "Contenders", "mine:false"},
	{flaws{listIsBackward: true}, "mutex", "Contenders", "want {owner:anna holding:true"},
}

// flawed has the index of the flaw for a process that was started to fail.
const flawed = "LOCKKEEPER_CONFORMANCE_FLAW"

// A lock that breaks one promise is caught by the check that stands for it. Each
// runs in a process of its own, since there is no other way to have a test fail
// and go on.
func TestBrokenLock(t *testing.T) {
	if index, err := strconv.Atoi(os.Getenv(flawed)); err == nil {
		suite := locks[broken[index].lock]
		suite.Backend = &backend{ways: suite.Ways, size: suite.Size, flaws: broken[index].flaws}
		suite.Run(t)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	caught := map[string]bool{}
	for i, b := range broken {
		caught[b.name()], caught[b.check] = true, true
		t.Run(b.name()+"/"+b.check, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestBrokenLock$/^"+b.check+"$", "-test.v")
			cmd.Env = append(os.Environ(), flawed+"="+strconv.Itoa(i))
			out, err := cmd.CombinedOutput()
			switch got := string(out); {
			case err == nil:
				t.Errorf("it passed:\n%s", got)
			case !strings.Contains(got, "--- FAIL: TestBrokenLock/"+b.check) || !strings.Contains(got, b.says):
				t.Errorf("it was not caught for saying %q:\n%s", b.says, got)
			case strings.Contains(got, "panic:"):
				t.Errorf("it brought the tests down:\n%s", got)
			}
		})
	}
	for f := range reflect.TypeFor[flaws]().Fields() {
		if !caught[f.Name] {
			t.Errorf("no check is known to catch %s", f.Name)
		}
	}
	for _, check := range conformance.Checks() {
		if !caught[check] {
			t.Errorf("nothing is known that %s catches", check)
		}
	}
}
